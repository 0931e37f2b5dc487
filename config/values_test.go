package config

import (
	"testing"
	"time"
)

func TestParseRate(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ name, text, rat, err string }{
		{"whole", "1000", "1000/1", ""},
		{"one in five seconds", "0.2", "1/5", ""},
		{"least", "0.001", "1/1000", ""},
		{"most", "1000000", "1000000/1", ""},
		{"most decimals", "0.333333333", "333333333/1000000000", ""},
		{"leading zero", "010", "10/1", ""},
		{"no whole part", ".5", "", `".5" is not a plain decimal number; write requests per second such as 1000 or 0.2`},
		{"no decimals", "5.", "", `"5." is not a plain decimal number; write requests per second such as 1000 or 0.2`},
		{"closed loop", "max", "0/1", ""},
		{"closed loop in capital letters", "MAX", "", `"MAX" is not in lower case; write max for a closed loop`},
		{"more than a closed loop", "max1", "", `"max1" is not a plain decimal number; write requests per second such as 1000 or 0.2`},
		{"fraction", "1/3", "", `"1/3" is not a plain decimal number; write requests per second such as 1000 or 0.2`},
		{"with unit", "10/s", "", `"10/s" is not a plain decimal number; write requests per second such as 1000 or 0.2`},
		{"below least", "0.000999999", "", `"0.000999999" is out of range; write requests per second from 0.001 to 1000000`},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			r, err := ParseRate(row.text)
			checkError(t, err, row.err)
			if err == nil {
				equal(t, "fraction", r.Rat().String(), row.rat)
				equal(t, "text", r.String(), row.text)
			}
		})
	}
}

func checkError(t *testing.T, err error, want string) {
	t.Helper()
	got := ""
	if err != nil {
		got = err.Error()
	}
	equal(t, "error", got, want)
}

func TestRateIsNotShared(t *testing.T) {
	t.Parallel()
	r := mustRate("10")
	r.Rat().SetInt64(99)
	equal(t, "rate", r.Float(), 10)
	equal(t, "same number", r.Equal(mustRate("10.0")), true)
	equal(t, "zero", Rate{}.String(), "0")
	equal(t, "zero", Rate{}.Float(), 0)
	equal(t, "is zero", Rate{}.IsZero(), true)
	equal(t, "zero is a closed loop", Rate{}.Max(), false)
	equal(t, "number is a closed loop", r.Max(), false)
}

func TestRateOfAClosedLoop(t *testing.T) {
	t.Parallel()
	r := mustRate("max")
	equal(t, "max", r.Max(), true)
	equal(t, "is zero", r.IsZero(), false)
	equal(t, "number", r.Float(), 0)
	equal(t, "text", r.String(), "max")
	equal(t, "itself", r.Equal(mustRate("max")), true)
	equal(t, "same as no rate", r.Equal(Rate{}), false)
	equal(t, "no rate is the same", Rate{}.Equal(r), false)
	equal(t, "same as a number", r.Equal(mustRate("1")), false)
}

func TestParseDuration(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name, text string
		want       time.Duration
		err        string
	}{
		{"seconds", "5s", 5 * time.Second, ""},
		{"mixed", "1m30s", 90 * time.Second, ""},
		{"milliseconds", "250ms", 250 * time.Millisecond, ""},
		{"zero", "0", 0, ""},
		{"day", "1d", 24 * time.Hour, ""},
		{"bare number", "5", 0, `"5" has no unit; write 5s for seconds or 5ms for milliseconds`},
		{"bare fraction", "1.5", 0, `"1.5" is not a duration; write one such as 250ms, 5s or 1m30s`},
		{"fraction", "1.5s", 0, `"1.5s" is a fraction or finer than a millisecond; write whole numbers with units such as 1s500ms`},
		{"microseconds", "50us", 0, `"50us" is a fraction or finer than a millisecond; write whole numbers with units such as 1s500ms`},
		{"negative", "-5s", 0, `"-5s" is negative; write a duration such as 5s, or 0s`},
		{"wrong order", "5s1m", 0, `"5s1m" is a fraction or finer than a millisecond; write whole numbers with units such as 1s500ms`},
		{"too long", "9999y", 0, `"9999y" is not a duration; write one such as 250ms, 5s or 1m30s`},
		{"empty", "", 0, `"" is not a duration; write one such as 250ms, 5s or 1m30s`},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			got, err := parseDuration(row.text)
			checkError(t, err, row.err)
			equal(t, "duration", got, row.want)
		})
	}
}

func TestSize(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name, text string
		want       Size
		shown, err string
	}{
		{"mebibyte", "1MiB", 1 << 20, "1MiB", ""},
		{"bytes", "1000", 1000, "1000", ""},
		{"bytes with unit", "17B", 17, "17", ""},
		{"kilobyte", "2kB", 2000, "2000", ""},
		{"decimal megabyte", "1MB", 1e6, "1000000", ""},
		{"decimal that is binary", "1024", 1024, "1KiB", ""},
		{"most", "1024GiB", 1 << 40, "1024GiB", ""},
		{"too much", "1025GiB", 0, "0", `"1025GiB" is out of range; write a size of at most 1024GiB`},
		{"overflow", "99999999999999999999", 0, "0", `"99999999999999999999" is out of range; write a size of at most 1024GiB`},
		{"negative", "-1", 0, "0", `"-1" is negative; write a size such as 512KiB, 1MiB or a number of bytes`},
		{"unknown unit", "1iB", 0, "0", `"1iB" is not a size; write one such as 512KiB, 1MiB or a number of bytes`},
		{"fraction", "1.5MiB", 0, "0", `"1.5MiB" is not a size; write one such as 512KiB, 1MiB or a number of bytes`},
		{"empty", "", 0, "0", `"" is not a size; write one such as 512KiB, 1MiB or a number of bytes`},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			var got Size
			checkError(t, got.parseText(row.text), row.err)
			equal(t, "size", got, row.want)
			equal(t, "text", got.String(), row.shown)
		})
	}
}

func TestURL(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ name, text, shown, public, host, address, target string }{
		{"plain", "http://h", "http://h", "http://h", "h", "h:80", "/"},
		{"port", "https://h:8443/a", "https://h:8443/a", "https://h:8443/a", "h:8443", "h:8443", "/a"},
		{"all secrets", "https://u:p@h/a?q=1", "https://<secret>@h/a?<secret>", "https://h/a", "h", "h:443", "/a?q=1"},
		{"user only", "http://u@h/", "http://<secret>@h/", "http://h/", "h", "h:80", "/"},
		{"masked", "http://<secret>@h/?<secret>", "http://<secret>@h/?<secret>", "http://h/", "h", "h:80", "/?<secret>"},
		{"IPv6", "http://[::1]:8080/", "http://[::1]:8080/", "http://[::1]:8080/", "[::1]:8080", "[::1]:8080", "/"},
		{"zone", "http://[fe80::1%25eth0]:80/", "http://[fe80::1%25eth0]:80/", "http://[fe80::1%25eth0]:80/", "[fe80::1]:80", "[fe80::1%eth0]:80", "/"},
		{"bare TCP", "tcp://h:6379", "tcp://h:6379", "tcp://h:6379", "h:6379", "h:6379", "/"},
		{"TLS alone", "tls://[::1]:443", "tls://[::1]:443", "tls://[::1]:443", "[::1]:443", "[::1]:443", "/"},
		{"escaped path", "http://h/a%2Fb%20c", "http://h/a%2Fb%20c", "http://h/a%2Fb%20c", "h", "h:80", "/a%2Fb%20c"},
		{"signs in the path", "http://h/a(b)~!$&'*+,;=:@", "http://h/a(b)~!$&'*+,;=:@", "http://h/a(b)~!$&'*+,;=:@", "h", "h:80", "/a(b)~!$&'*+,;=:@"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			u, err := ParseURL(row.text)
			if err != nil {
				t.Fatal(err)
			}
			equal(t, "shown", u.String(), row.shown)
			equal(t, "public", u.Public(), row.public)
			equal(t, "host", u.Host(), row.host)
			equal(t, "address", u.Address(), row.address)
			equal(t, "request target", u.RequestURI(), row.target)
			again, err := ParseURL(u.String())
			if err != nil || again.String() != u.String() {
				t.Errorf("parsing the shown URL again: %v, %v", again, err)
			}
		})
	}
	equal(t, "zero", URL{}.String()+URL{}.Public(), "")
}

func TestSuggestion(t *testing.T) {
	t.Parallel()
	fields := []string{"timeout", "timeouts", "rate"}
	for _, row := range []struct{ name, key, want string }{
		{"one letter more", "ratte", "write rate"},
		{"two letters changed", "timaaut", "write timeout"},
		{"the nearest", "timeoutss", "write timeouts"},
		{"nothing like it", "colour", "write one of timeout, timeouts, rate"},
		{"empty", "", "write one of timeout, timeouts, rate"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			equal(t, "suggestion", suggestion(row.key, fields), row.want)
		})
	}
	equal(t, "suggestion where there is no field", suggestion("rate", nil), "remove it")
}

func TestAccepts(t *testing.T) {
	t.Parallel()
	e := Expect{Status: []string{"2xx", "404"}}
	for code, want := range map[int]bool{199: false, 200: true, 299: true, 300: false, 403: false, 404: true, 405: false, 0: false} {
		if got := e.Accepts(code); got != want {
			t.Errorf("status %d: got %v, want %v", code, got, want)
		}
	}
}
