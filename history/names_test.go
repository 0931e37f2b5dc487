package history

import (
	"regexp"
	"strings"
	"testing"
	"time"
)

func TestFolderNames(t *testing.T) {
	seen := map[string]string{}
	for _, row := range []struct{ name, want string }{ // want: behind its sum, where there is one, a *
		{"shop-ingress", "shop-ingress"},
		{"10.0.0.7_v2", "10.0.0.7_v2"},
		{"Shop-Ingress", "shop-ingress~*"},
		{"SHOP-INGRESS", "shop-ingress~*"},
		{"https://shop.example.com/healthz", "https_shop.example.com_healthz~*"},
		{"http://[::1]:8080/", "http_1_8080_~*"},
		{"../../etc/passwd", "_.._etc_passwd~*"},
		{"..", "~*"},
		{".", "~*"},
		{"", "~*"},
		{".hidden", "hidden~*"},
		{"ends.", "ends~*"},
		{"a/b", "a_b~*"},
		{`a\b`, "a_b~*"},
		{"a_b", "a_b"},
		{"Tür nach München", "t_r_nach_m_nchen~*"},
		{"日本", "_~*"},
		{"новый", "_~*"},
		{"a~b", "a_b~*"},
		{"a\nb", "a_b~*"},
		{"con", "con~*"},
		{"com1.example", "com1.example~*"},
		{"console", "console"},
		{"\xff\xfe", "_~*"},
		{strings.Repeat("x", 100), strings.Repeat("x", 100)},
		{strings.Repeat("x", 101), strings.Repeat("x", 100) + "~*"},
		{strings.Repeat("ü", 500), "_~*"},
	} {
		got := folderName(row.name)
		shown := regexp.MustCompile(`~[0-9a-f]{16}$`).ReplaceAllString(got, "~*")
		if shown != row.want {
			t.Errorf("the folder of %q is %q, want %q", row.name, got, row.want)
		}
		if other, twice := seen[got]; twice {
			t.Errorf("%q and %q have the same folder %q", row.name, other, got)
		}
		seen[got] = row.name
		if !regexp.MustCompile(`^[a-z0-9_~-][a-z0-9._~-]*[a-z0-9_~-]$`).MatchString(got) && len(got) > 1 || len(got) > 120 {
			t.Errorf("%q is no name for any system", got)
		}
	}
}

func TestDays(t *testing.T) {
	day := time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
	if got := fileName(day); got != "2026-12-01.hlog" {
		t.Errorf("the file of a day is %q", got)
	}
	for name, want := range map[string]bool{"2026-12-01.hlog": true, "2026-13-01.hlog": false, "lock": false, "2026-12-01.hlog.damaged": false, "x.hlog": false} {
		if got, ok := dayOf(name); ok != want || ok && !got.Equal(day) {
			t.Errorf("%q is of %v (%v), want a day: %v", name, got, ok, want)
		}
	}
	east := time.FixedZone("", 13*3600)
	if got := midnight(time.Date(2026, 12, 2, 5, 0, 0, 0, east)); !got.Equal(day) {
		t.Errorf("the day of 05:00+13:00 is %v, want that of UTC", got)
	}
}
