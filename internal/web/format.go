package web

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// clock is a time as people write it, always UTC.
func clock(t time.Time) string {
	if t.IsZero() {
		return "never"
	}
	return t.UTC().Format("2006-01-02 15:04:05 UTC")
}

// ago is how long before now t was, roughly.
func ago(now, t time.Time) string {
	switch d := now.Sub(t); {
	case t.IsZero():
		return "never"
	case d < -time.Minute:
		return "in the future"
	case d < 5*time.Second:
		return "just now"
	default:
		return span(d) + " ago"
	}
}

// span is a duration in its largest unit.
func span(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", int(d.Hours()))
	}
	return fmt.Sprintf("%d days", int(d.Hours()/24))
}

// size is a number of bytes in its largest unit.
func size(n int64) string {
	const units = "KMGTPE"
	if n < 1024 {
		return number(n) + " B"
	}
	f, i := float64(n)/1024, 0
	for f >= 1000 && i < len(units)-1 {
		f, i = f/1024, i+1
	}
	return fmt.Sprintf("%.3g %ciB", f, units[i])
}

// number groups digits by three.
func number(n int64) string {
	if n < 0 {
		return "-" + number(-n)
	}
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return number(int64(n)) + " " + what + "s"
}

// reasons are counts by name, the largest first, without those that are zero.
func reasons(counts map[string]int64) string {
	names := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), strings.Compare(a, b))
	})
	var out []string
	for _, name := range names {
		if counts[name] > 0 {
			out = append(out, clean(name, 40)+" "+number(counts[name]))
		}
	}
	return strings.Join(out, ", ")
}
