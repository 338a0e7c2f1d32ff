package catalog

import (
	"strings"
)

// slugMessage is how much of a message goes into a slug, in characters. The
// published "snapshot-backfill-paused-but-received-snapshot-ch" shows that it is
// the message which is cut, in the middle of a word, not the slug: with the
// comma that the slug drops, those are 50.
const slugMessage = 50

// Slug makes the record's name from its message as the published knowledge base
// does: the words without placeholders, in lower case, joined with dashes.
func Slug(message string) string {
	var words strings.Builder
	for _, p := range ParseTemplate(message) {
		words.WriteString(p.Literal)
	}
	var b strings.Builder
	n := 0
	for _, c := range words.String() {
		if n++; n > slugMessage {
			break
		}
		switch {
		case c < 0x80 && (isLetter(byte(c)) || isDigit(byte(c))):
			b.WriteByte(byte(c))
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "-"):
			b.WriteByte('-')
		}
	}
	return strings.ToLower(strings.Trim(b.String(), "-"))
}
