package config

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// parseDuration reads 250ms, 1h30m or 7d. The error completes the sentence
// `"x" …`.
func parseDuration(s string) (time.Duration, error) {
	if s == "0" {
		return 0, nil
	}
	if s != "" && strings.Trim(s, "0123456789.") == "" {
		return 0, fmt.Errorf("has no unit; write for example %ss or %sms", s, s)
	}
	if strings.HasPrefix(s, "-") {
		return 0, fmt.Errorf("is negative; write a duration such as %s", strings.TrimPrefix(s, "-"))
	}
	days, rest, hasDays := strings.Cut(s, "d")
	if !hasDays {
		days, rest = "0", s
	}
	n, err := strconv.ParseUint(days, 10, 16)
	d := time.Duration(0)
	if err == nil && (rest != "" || !hasDays) {
		d, err = time.ParseDuration(rest)
	}
	// 100 years: far from the overflow, far above any sensible value.
	if err != nil || n > 36500 || d > 36500*day {
		return 0, fmt.Errorf("is not a duration; write for example 250ms, 30s, 5m, 1h or 7d")
	}
	return time.Duration(n)*day + d, nil
}

// formatDuration is the shortest spelling that parseDuration reads back.
func formatDuration(d time.Duration) string {
	if d == 0 {
		return "0"
	}
	if d%day == 0 {
		return strconv.FormatInt(int64(d/day), 10) + "d"
	}
	s := d.String() // 1h0m0s
	s = strings.TrimSuffix(s, "0s")
	if s == "" || !strings.ContainsAny(s[len(s)-1:], "hms") {
		return d.String() // 10s, where 0s was part of the number
	}
	if t := strings.TrimSuffix(s, "0m"); t != s && strings.HasSuffix(t, "h") {
		return t
	}
	return s
}

var sizeForm = regexp.MustCompile(`^([0-9]+(?:\.[0-9]+)?) ?([A-Za-z]*)$`)

// parseSize reads 64KiB, 64Ki, 1.5MiB, 10MB or 65536. The error completes the
// sentence `"x" …`.
func parseSize(s string) (Size, error) {
	m := sizeForm.FindStringSubmatch(s)
	if m == nil {
		if strings.HasPrefix(s, "-") {
			return 0, fmt.Errorf("is negative; write a size such as %s", strings.TrimPrefix(s, "-"))
		}
		return 0, fmt.Errorf("is not a size; write for example 64KiB, 1MiB or 65536")
	}
	unit, ok := sizeUnit(m[2])
	if !ok {
		if iec := strings.ToUpper(m[2]); len(iec) <= 2 && strings.ContainsAny(iec[:1], "KMGT") {
			return 0, fmt.Errorf("has a unit that can be read in two ways; write %s%siB", m[1], iec[:1])
		}
		return 0, fmt.Errorf("has an unknown unit %q; use KiB, MiB or GiB", m[2])
	}
	n, err := strconv.ParseFloat(m[1], 64)
	if err != nil || n*float64(unit) > math.MaxInt64/2 {
		return 0, fmt.Errorf("is too large for a size")
	}
	return Size(n * float64(unit)), nil
}

func sizeUnit(s string) (Size, bool) {
	switch s {
	case "", "B":
		return 1, true
	case "KiB", "Ki":
		return KiB, true
	case "MiB", "Mi":
		return MiB, true
	case "GiB", "Gi":
		return GiB, true
	case "TiB", "Ti":
		return TiB, true
	case "KB", "kB":
		return 1e3, true
	case "MB":
		return 1e6, true
	case "GB":
		return 1e9, true
	case "TB":
		return 1e12, true
	}
	return 0, false
}

// String is the shortest exact spelling that parseSize reads back.
func (s Size) String() string {
	for _, u := range []struct {
		size Size
		name string
	}{{TiB, "TiB"}, {GiB, "GiB"}, {MiB, "MiB"}, {KiB, "KiB"}} {
		if s >= u.size && s%u.size == 0 {
			return strconv.FormatInt(int64(s/u.size), 10) + u.name
		}
	}
	return strconv.FormatInt(int64(s), 10)
}
