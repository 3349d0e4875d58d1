// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"html"
	"math"
	"strings"
)

// Sizes in pixels: of a cell of Grafana's grid, and of the head of the picture.
const (
	cellWidth, cellHeight = 50, 26
	head                  = 40
	gap                   = 4
)

// colours are those of the lines, in order.
var colours = [...]string{"#73bf69", "#f2cc0c", "#5794f2", "#ff9830", "#f2495c", "#b877d9", "#8ab8ff", "#96d98d", "#ffa6b0", "#fade2a"}

// draw returns a dashboard as an SVG, with the lines of each panel.
func draw(d *dashboard, answers [][]series, over period) string {
	bottom := 0
	for _, p := range d.Panels {
		bottom = max(bottom, p.GridPos.Y+p.GridPos.H)
	}
	width, height := 24*cellWidth, head+bottom*cellHeight
	var out strings.Builder
	fmt.Fprintf(&out, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" "+
		"font-family=\"sans-serif\" font-size=\"11\">\n",
		width, height, width, height)
	fmt.Fprintf(&out, "<rect width=\"100%%\" height=\"100%%\" fill=\"#111217\"/>\n<text x=\"10\" y=\"26\" font-size=\"18\" "+
		"fill=\"#d8d9da\">%s</text>\n", html.EscapeString(d.Title))
	for i := range d.Panels {
		d.Panels[i].draw(&out, answers[i], over)
	}
	out.WriteString("</svg>\n")
	return out.String()
}

// draw writes the frame of a panel and what is in it.
func (p *panel) draw(out *strings.Builder, lines []series, over period) {
	width, height := p.GridPos.W*cellWidth-2*gap, p.GridPos.H*cellHeight-2*gap
	fmt.Fprintf(out, "<g transform=\"translate(%d %d)\">\n", p.GridPos.X*cellWidth+gap, head+p.GridPos.Y*cellHeight+gap)
	fmt.Fprintf(out, "<rect width=\"%d\" height=\"%d\" rx=\"3\" fill=\"#181b1f\" stroke=\"#2c3235\"/>\n", width, height)
	fmt.Fprintf(out, "<text x=\"8\" y=\"16\" font-weight=\"bold\" fill=\"#d8d9da\">%s</text>\n", html.EscapeString(p.Title))
	switch {
	case len(lines) == 0:
		fmt.Fprintf(out, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\" fill=\"#8e8e8e\">No data</text>\n", width/2, height/2)
	case p.Type == "stat":
		p.number(out, lines[0], width, height)
	default:
		p.graph(out, lines, over, float64(width), float64(height))
	}
	out.WriteString("</g>\n")
}

// number writes the last value of a line, or its name where the value is always 1.
func (p *panel) number(out *strings.Builder, line series, width, height int) {
	text := format(line.samples[len(line.samples)-1].value, p.FieldConfig.Defaults.Unit)
	if strings.Contains(p.Targets[0].LegendFormat, "{{") {
		text = line.name
	}
	fmt.Fprintf(out, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\" font-size=\"26\" fill=\"%s\">%s</text>\n", width/2, height/2+16,
		colours[0], html.EscapeString(text))
}

// graph writes lines, the two ends of their scale, and a legend.
func (p *panel) graph(out *strings.Builder, lines []series, over period, width, height float64) {
	const left, top, right, below = 56, 28, 10, 40
	most := 0.0
	for _, line := range lines {
		for _, s := range line.samples {
			most = math.Max(most, s.value)
		}
	}
	if most == 0 {
		most = 1
	}
	from, span := float64(over.from.UnixMilli())/1000, over.to.Sub(over.from).Seconds()
	x := func(at float64) float64 { return left + (at-from)/span*(width-left-right) }
	y := func(value float64) float64 { return height - below - value/most*(height-top-below) }
	for _, value := range []float64{0, most / 2, most} {
		fmt.Fprintf(out, "<line x1=\"%d\" x2=\"%.0f\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"#2c3235\"/>\n", left, width-right, y(value), y(value))
		fmt.Fprintf(out, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\" fill=\"#8e8e8e\">%s</text>\n", left-6, y(value)+4,
			format(value, p.FieldConfig.Defaults.Unit))
	}
	fmt.Fprintf(out, "<text x=\"%d\" y=\"%.0f\" fill=\"#8e8e8e\">%s</text>\n", left, height-below+14, over.from.UTC().Format("15:04:05"))
	fmt.Fprintf(out, "<text x=\"%.0f\" y=\"%.0f\" text-anchor=\"end\" fill=\"#8e8e8e\">%s</text>\n", width-right, height-below+14,
		over.to.UTC().Format("15:04:05"))
	legend := float64(left)
	for i, line := range lines {
		colour, places := colours[i%len(colours)], make([]string, len(line.samples))
		for j, s := range line.samples {
			places[j] = fmt.Sprintf("%.1f,%.1f", x(s.at), y(s.value))
		}
		fmt.Fprintf(out, "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"1.5\" points=\"%s\"/>\n", colour, strings.Join(places, " "))
		if room := float64(len(line.name))*6 + 24; legend+room < width {
			fmt.Fprintf(out, "<rect x=\"%.0f\" y=\"%.0f\" width=\"10\" height=\"3\" fill=\"%s\"/><text x=\"%.0f\" y=\"%.0f\" "+
				"fill=\"#c7d0d9\">%s</text>\n",
				legend, height-12, colour, legend+14, height-7, html.EscapeString(line.name))
			legend += room
		}
	}
}

// format returns a value with a unit of Grafana's, short.
func format(value float64, unit string) string {
	switch unit {
	case "bool_yes_no":
		return map[bool]string{true: "Yes", false: "No"}[value != 0]
	case "bytes":
		for _, name := range []string{"B", "KiB", "MiB", "GiB", "TiB"} {
			if value < 1024 || name == "TiB" {
				return fmt.Sprintf("%.3g %s", value, name)
			}
			value /= 1024
		}
	case "s":
		if value != 0 && value < 1 {
			return fmt.Sprintf("%.3g ms", value*1000)
		}
		return fmt.Sprintf("%.3g s", value)
	}
	return fmt.Sprintf("%.4g", value)
}
