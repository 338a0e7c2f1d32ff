package logline

import "testing"

// unwrapCases are lines as they come in their thousands, none with an error.
func unwrapCases() map[string][]byte {
	return map[string][]byte{
		"plain":  []byte(header),
		"CRI":    []byte(stamp + " stdout F " + header),
		"docker": []byte(`{"log":"` + header + ` name=\"x\"\n","stream":"stdout","time":"` + stamp + `"}`),
		"cloud":  []byte(`{"timestamp":"` + stamp + `","level":"INFO","fields":{"message":"x"},"target":"y"}`),
		"short":  []byte("Nov 30 09:14:07 node-1 risingwave[42]: " + header),
	}
}

// TestUnwrapAllocatesNothing once the stream's writers are known.
func TestUnwrapAllocatesNothing(t *testing.T) {
	for name, line := range unwrapCases() {
		var u Unwrapper
		u.Unwrap(line, false)
		u.Unwrap(line, false)
		if n := testing.AllocsPerRun(100, func() { u.Unwrap(line, false) }); n != 0 {
			t.Errorf("%s: %v allocations a line", name, n)
		}
	}
}

func BenchmarkUnwrap(b *testing.B) {
	for name, line := range unwrapCases() {
		b.Run(name, func(b *testing.B) {
			var u Unwrapper
			b.SetBytes(int64(len(line)))
			b.ReportAllocs()
			for b.Loop() {
				u.Unwrap(line, false)
			}
		})
	}
}

func BenchmarkParse(b *testing.B) {
	for name, rec := range map[string]string{
		"text":  stamp + " ERROR actor{otel.name=\"Actor 17\" actor_id=17}: risingwave_stream::task: actor exit with error error=boom",
		"cloud": `{"timestamp":"` + stamp + `","level":"ERROR","fields":{"message":"x","error":"y"},"target":"risingwave_stream::task","spans":[{"actor_id":17,"name":"actor"}]}`,
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(rec)))
			b.ReportAllocs()
			for b.Loop() {
				Parse([]byte(rec))
			}
		})
	}
}
