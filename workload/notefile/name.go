package notefile

import (
	"crypto/sha256"
	"fmt"
	"strings"
)

// longestName is the most bytes of a file name before its ending. File systems
// allow 255 in all.
const longestName = 200

// fileName returns what the files of a churn are called. Names that differ have
// files that differ, also where a file system does not tell upper case from
// lower case, and whatever is written in a name stays in the folder.
func fileName(churn string) string {
	var b strings.Builder
	b.WriteString("churn-") // a name may be one that a system keeps for itself
	for i := range len(churn) {
		switch c := churn[i]; {
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9', c == '-', c == '_', c == '.':
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	name := b.String()
	if len(name) > longestName {
		sum := sha256.Sum256([]byte(churn))
		name = fmt.Sprintf("%s~%x", name[:longestName/2], sum) // no shorter name has a ~
	}
	return name
}
