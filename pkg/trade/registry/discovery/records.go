// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"errors"
	"fmt"
	"strings"

	"golang.org/x/net/dns/dnsmessage"
)

// errOther says that a message is no answer to what was asked.
var errOther = errors.New("it is no answer to this question")

// records are those of an answer, for one name.
type records struct {
	code                 dnsmessage.RCode
	validated, truncated bool

	pointers []string
	services []dnsmessage.SRVResource
	texts    [][]string
}

// empty reports whether there is none.
func (r *records) empty() bool { return len(r.pointers)+len(r.services)+len(r.texts) == 0 }

// service returns the only SRV record.
func (r *records) service() (dnsmessage.SRVResource, error) {
	switch {
	case len(r.services) != 1:
		return dnsmessage.SRVResource{}, fmt.Errorf("it has %d SRV records, and a registry one: %w", len(r.services), ErrHostile)
	case r.services[0].Port == 0:
		return dnsmessage.SRVResource{}, fmt.Errorf("its SRV record has no port: %w", ErrHostile)
	}
	return r.services[0], nil
}

// fingerprint returns what the only TXT record says as fp=; empty if it says nothing. The first one counts (RFC 6763, section 6.4).
func (r *records) fingerprint() (string, error) {
	if len(r.texts) != 1 {
		return "", fmt.Errorf("it has %d TXT records, and a registry one: %w", len(r.texts), ErrHostile)
	}
	for _, text := range r.texts[0] {
		key, value, _ := strings.Cut(text, "=")
		if !strings.EqualFold(key, "fp") {
			continue
		}
		if err := CheckFingerprint(value); err != nil {
			return "", fmt.Errorf("its TXT record: %w: %w", err, ErrHostile)
		}
		return value, nil
	}
	return "", nil
}

// question returns what is asked for records of a name.
func question(name string, kind dnsmessage.Type) (dnsmessage.Question, error) {
	full, err := dnsmessage.NewName(name + ".")
	if err != nil || len(name) > maxName {
		return dnsmessage.Question{}, fmt.Errorf("%.80q... is longer than a name can be", name)
	}
	return dnsmessage.Question{Name: full, Type: kind, Class: dnsmessage.ClassINET}, nil
}

// packed returns a question as it is sent: it says that we know the AD bit (RFC 6840, section 5.7), and how long an answer may be.
func packed(id uint16, asked dnsmessage.Question) ([]byte, error) {
	b := dnsmessage.NewBuilder(nil, dnsmessage.Header{ID: id, RecursionDesired: true, AuthenticData: true})
	var header dnsmessage.ResourceHeader
	err := header.SetEDNS0(maxDatagram, dnsmessage.RCodeSuccess, false)
	if err := errors.Join(err, b.StartQuestions(), b.Question(asked), b.StartAdditionals(),
		b.OPTResource(header, dnsmessage.OPTResource{})); err != nil {
		return nil, fmt.Errorf("make the question: %w", err)
	}
	return b.Finish()
}

// parseAnswer returns the records of an answer that are of the name and the type that was asked for. The error is errOther if it is none to
// this question, and else ErrHostile.
func parseAnswer(text []byte, id uint16, asked dnsmessage.Question) (said records, err error) {
	var p dnsmessage.Parser
	header, err := p.Start(text)
	if err != nil || !header.Response || header.ID != id {
		return said, errOther
	}
	questions, err := p.AllQuestions()
	if err != nil || len(questions) != 1 || questions[0].Type != asked.Type || questions[0].Class != asked.Class ||
		!strings.EqualFold(questions[0].Name.String(), asked.Name.String()) {
		return said, errOther
	}
	said.code, said.validated, said.truncated = header.RCode, header.AuthenticData, header.Truncated
	if said.truncated {
		return said, nil // Somebody asks for the whole answer.
	}
	err = said.add(&p, p.AnswerHeader, p.SkipAnswer, asked.Name.String(), asked.Type)
	return said, err
}

// add reads a section of a message: of its records those of a name and a type, or of all types for the zero one.
func (r *records) add(
	p *dnsmessage.Parser, next func() (dnsmessage.ResourceHeader, error), skip func() error, name string, kind dnsmessage.Type,
) error {
	for n := 0; ; n++ {
		header, err := next()
		switch {
		case errors.Is(err, dnsmessage.ErrSectionDone):
			return nil
		case err != nil:
			return fmt.Errorf("%w: %w", ErrHostile, err)
		case n == maxRecords:
			return fmt.Errorf("more than %d records: %w", maxRecords, ErrHostile)
		}
		wanted := strings.EqualFold(header.Name.String(), name) && (kind == header.Type || kind == 0)
		if !wanted || header.Class&^cacheFlush != dnsmessage.ClassINET {
			err = skip()
		} else {
			err = r.addRecord(p, header.Type, skip)
		}
		if err != nil {
			return fmt.Errorf("%w: %w", ErrHostile, err)
		}
	}
}

// addRecord reads the record that is next.
func (r *records) addRecord(p *dnsmessage.Parser, kind dnsmessage.Type, skip func() error) error {
	switch kind { //nolint:exhaustive // The others are passed over.
	case dnsmessage.TypePTR:
		pointer, err := p.PTRResource()
		r.pointers = append(r.pointers, pointer.PTR.String())
		return err
	case dnsmessage.TypeSRV:
		service, err := p.SRVResource()
		r.services = append(r.services, service)
		return err
	case dnsmessage.TypeTXT:
		text, err := p.TXTResource()
		r.texts = append(r.texts, text.TXT)
		return err
	default:
		return skip()
	}
}

// typeName returns what people call a type of record.
func typeName(kind dnsmessage.Type) string { return strings.TrimPrefix(kind.String(), "Type") }
