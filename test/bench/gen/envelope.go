package gen

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"
)

// An envelope appends what a container runtime or the journal makes of a
// record's lines.
type envelope func(dst, lines []byte, at time.Time, stream string) []byte

// pieceSize is where container runtimes cut a line.
const pieceSize = 16 << 10

// eachLine calls fn with each line, without its newline, cut into pieces.
func eachLine(lines []byte, fn func(piece []byte, last bool)) {
	for len(lines) > 0 {
		line, rest, _ := bytes.Cut(lines, []byte{'\n'})
		lines = rest
		for len(line) > pieceSize {
			fn(line[:pieceSize], false)
			line = line[pieceSize:]
		}
		fn(line, true)
	}
}

// cri is the log of containerd and CRI-O under /var/log/pods.
func cri(dst, lines []byte, at time.Time, stream string) []byte {
	eachLine(lines, func(piece []byte, last bool) {
		at = at.Add(1117)
		dst = append(at.AppendFormat(dst, "2006-01-02T15:04:05.000000000Z07:00"), ' ')
		dst = append(append(dst, stream...), " F "...)
		if !last {
			dst[len(dst)-2] = 'P'
		}
		dst = append(append(dst, piece...), '\n')
	})
	return dst
}

// docker is the json-file log driver. A cut piece has no newline.
func docker(dst, lines []byte, at time.Time, stream string) []byte {
	eachLine(lines, func(piece []byte, last bool) {
		at = at.Add(1117)
		dst = appendJSON(append(dst, `{"log":`...), piece)
		if last {
			dst = append(dst[:len(dst)-1], `\n"`...)
		}
		dst = append(append(append(dst, `,"stream":"`...), stream...), `","time":"`...)
		dst = append(at.AppendFormat(dst, time.RFC3339Nano), "\"}\n"...)
	})
	return dst
}

// compose is what `docker compose logs` prints.
func compose(dst, lines []byte, _ time.Time, _ string) []byte {
	for line := range bytes.Lines(lines) {
		dst = append(append(dst, "risingwave-standalone-1  | "...), line...)
	}
	return dst
}

// journal counts the entries of one boot.
type journal struct {
	entry int64
	rand  *rand.Rand
}

// cursor is what journald says of an entry's place.
func (j *journal) cursor(at time.Time) string {
	j.entry++
	return fmt.Sprintf("s=0adcd6062fd8480dab90638762945256;i=%x;b=0123456789abcdef0123456789abcdef;m=%x;t=%x;x=%016x",
		j.entry, at.UnixMicro()&0xffffffff, at.UnixMicro(), j.rand.Uint64())
}

// export is `journalctl -o export`: one field a line, an empty line after each entry.
func (j *journal) export(dst, lines []byte, at time.Time, _ string) []byte {
	for line := range bytes.Lines(lines) {
		dst = append(append(dst, "__CURSOR="...), j.cursor(at)...)
		dst = append(dst, "\n__REALTIME_TIMESTAMP="...)
		dst = strconv.AppendInt(dst, at.UnixMicro(), 10)
		dst = append(dst, "\n__MONOTONIC_TIMESTAMP="...)
		dst = strconv.AppendInt(dst, at.UnixMicro()&0xffffffff, 10)
		dst = append(dst, "\n_BOOT_ID=0123456789abcdef0123456789abcdef\nMESSAGE="...)
		dst = append(dst, line...)
		dst = append(dst, `PRIORITY=6
SYSLOG_FACILITY=3
SYSLOG_IDENTIFIER=risingwave
_UID=1000
_GID=1000
_COMM=risingwave
_EXE=/risingwave/bin/risingwave
_SYSTEMD_CGROUP=/system.slice/risingwave-compute.service
_SYSTEMD_UNIT=risingwave-compute.service
_PID=4242
_TRANSPORT=stdout
_STREAM_ID=aaaabbbbccccddddeeeeffff00001111
_MACHINE_ID=fedcba9876543210fedcba9876543210
_HOSTNAME=rw-node-0

`...)
	}
	return dst
}

// json is `journalctl -o json`.
func (j *journal) json(dst, lines []byte, at time.Time, _ string) []byte {
	for line := range bytes.Lines(lines) {
		dst = append(append(dst, `{"__CURSOR":"`...), j.cursor(at)...)
		dst = append(dst, `","PRIORITY":"6","_SYSTEMD_UNIT":"risingwave-compute.service","_HOSTNAME":"rw-node-0","MESSAGE":`...)
		dst = appendJSON(dst, bytes.TrimSuffix(line, []byte{'\n'}))
		dst = append(dst, `,"__REALTIME_TIMESTAMP":"`...)
		dst = strconv.AppendInt(dst, at.UnixMicro(), 10)
		dst = append(dst, `","_UID":"1000","_TRANSPORT":"stdout","_MACHINE_ID":"fedcba9876543210fedcba9876543210","SYSLOG_IDENTIFIER":"risingwave",`+
			`"_EXE":"/risingwave/bin/risingwave","_COMM":"risingwave","_PID":"4242","_GID":"1000","_STREAM_ID":"aaaabbbbccccddddeeeeffff00001111"}`...)
		dst = append(dst, '\n')
	}
	return dst
}
