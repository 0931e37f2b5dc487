package notefile

import (
	"path/filepath"
	"strings"
	"testing"
)

func TestFileNames(t *testing.T) {
	tests := []struct{ name, churn, want string }{
		{"usual", "shop-backend_2.x", "churn-shop-backend_2.x"},
		{"upper case", "Shop", "churn-%53hop"},
		{"out of the folder", "../../etc/passwd", "churn-..%2F..%2Fetc%2Fpasswd"},
		{"of Windows", `c:\shop`, "churn-c%3A%5Cshop"},
		{"kept for itself by Windows", "con", "churn-con"},
		{"folder itself", ".", "churn-."},
		{"NUL", "a\x00b", "churn-a%00b"},
		{"not ASCII", "ü", "churn-%C3%BC"},
		{"escape", "%2F", "churn-%252%46"},
		{"tilde", "~", "churn-%7E"},
		{"longest", strings.Repeat("a", 194), "churn-" + strings.Repeat("a", 194)}, // 200 bytes
		// sha256 of 195 times "a"
		{"too long", strings.Repeat("a", 195), "churn-" + strings.Repeat("a", 94) + "~" + "1f82c1acc9ec4bcc988950d392ec05bf1afe5a42642f84dc8d406ab57f9e1285"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := fileName(test.churn); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

// FuzzFileNames looks for two churns with one file, and for a name that leaves
// its folder.
func FuzzFileNames(f *testing.F) {
	f.Add("shop", "Shop")
	f.Add("a/b", "a%2Fb")
	f.Add(strings.Repeat("x", 300), strings.Repeat("x", 301))
	f.Fuzz(func(t *testing.T, a, b string) {
		x, y := fileName(a), fileName(b)
		if a != b && strings.EqualFold(x, y) {
			t.Errorf("%q and %q both have %q", a, b, x)
		}
		if filepath.Base(x) != x || len(x) > longestName {
			t.Errorf("%q has %q", a, x)
		}
	})
}
