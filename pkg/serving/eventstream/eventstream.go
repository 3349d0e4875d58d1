// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package eventstream writes and reads streams of server-sent events
// (https://html.spec.whatwg.org/multipage/server-sent-events.html), with bounds of time and size at both ends.
//
// It does not know what the events are about, nor who may read them.
package eventstream

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// MediaType is that of a stream.
const MediaType = "text/event-stream"

// ErrTooLarge means that an event has more bytes than its reader accepts.
var ErrTooLarge = errors.New("the event is too large")

// Event is one event.
type Event struct {
	// ID is how far a reader has come that has seen the event. It is empty if the one before counts.
	ID string
	// Name says what the event means.
	Name string
	// Data is one line of text, such as JSON without line breaks.
	Data []byte
}

// Append appends the text of an event. Neither its ID nor its name nor its data may have line breaks.
func Append(to []byte, e Event) []byte {
	if e.ID != "" {
		to = append(append(append(to, "id: "...), e.ID...), '\n')
	}
	to = append(append(append(to, "event: "...), e.Name...), '\n')
	return append(append(append(to, "data: "...), e.Data...), "\n\n"...)
}

// Writer sends events. It is for one goroutine.
type Writer struct {
	to      io.Writer
	control *http.ResponseController
	timeout time.Duration
}

// Begin begins the stream that answers a request. Each write has the timeout: the reader must read fast enough.
func Begin(w http.ResponseWriter, timeout time.Duration) *Writer {
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Time{}) // Nothing more is read. Where there are no deadlines, there is no connection.
	w.Header().Set("Content-Type", MediaType)
	w.Header().Set("Cache-Control", "no-store")
	return &Writer{to: w, control: control, timeout: timeout}
}

// Send sends events, as [Append] writes them, at once. After an error nothing more can be sent.
func (w *Writer) Send(events []byte) error {
	_ = w.control.SetWriteDeadline(time.Now().Add(w.timeout)) // Where there are no deadlines, there is no connection.
	if _, err := w.to.Write(events); err != nil {
		return fmt.Errorf("send events: %w", err)
	}
	if err := w.control.Flush(); err != nil {
		return fmt.Errorf("send events: %w", err)
	}
	return nil
}

// Reader reads events. It is for one goroutine.
type Reader struct {
	from *bufio.Reader
	max  int // Bytes of an event.
}

// NewReader returns a reader of events that have at most so many bytes each, with their names and IDs.
func NewReader(from io.Reader, maxBytes int) *Reader {
	return &Reader{from: bufio.NewReaderSize(from, min(maxBytes, 16<<10)), max: maxBytes}
}

// Next returns the next event: comments and events without data are passed over, though the ID of the latter comes with the next event that
// has data. The error is io.EOF when the stream ends after an event, io.ErrUnexpectedEOF when within one, [ErrTooLarge], or that of the
// connection.
func (r *Reader) Next() (Event, error) {
	var e Event
	var data [][]byte
	left := r.max
	for {
		line, err := r.line(&left)
		switch {
		case errors.Is(err, io.EOF) && len(line) == 0 && len(data) == 0 && e.Name == "":
			return Event{}, io.EOF
		case errors.Is(err, io.EOF):
			return Event{}, io.ErrUnexpectedEOF
		case err != nil:
			return Event{}, err
		case len(line) > 0:
			if text, ok := e.readLine(line); ok {
				data = append(data, text)
			}
			continue
		case data == nil:
			e.Name, left = "", r.max
			continue
		}
		e.Data = bytes.Join(data, []byte("\n"))
		return e, nil
	}
}

// readLine takes the field that a line has into account. It returns the data, if it is that.
func (e *Event) readLine(line []byte) (data []byte, is bool) {
	name, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(name) {
	case "id":
		if !bytes.ContainsRune(value, 0) {
			e.ID = string(value)
		}
	case "event":
		e.Name = string(value)
	case "data":
		return value, true
	}
	return nil, false
}

// line returns the next line without its end, and takes its bytes from what is left.
func (r *Reader) line(left *int) ([]byte, error) {
	var line []byte
	for {
		part, err := r.from.ReadSlice('\n')
		if *left -= len(part); *left < 0 {
			return nil, ErrTooLarge
		}
		line = append(line, part...)
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil:
			return line, err
		}
		return []byte(strings.TrimRight(string(line), "\r\n")), nil
	}
}
