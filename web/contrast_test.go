package web

import (
	"math"
	"regexp"
	"strconv"
	"testing"
)

// luminance is the relative luminance of a colour (WCAG 2.2, "relative
// luminance").
func luminance(t *testing.T, colour string) float64 {
	t.Helper()
	v, err := strconv.ParseUint(colour, 16, 32)
	if err != nil {
		t.Fatal(err)
	}
	channel := func(shift int) float64 {
		c := float64(v>>shift&0xff) / 255
		if c <= 0.04045 {
			return c / 12.92
		}
		return math.Pow((c+0.055)/1.055, 2.4)
	}
	return 0.2126*channel(16) + 0.7152*channel(8) + 0.0722*channel(0)
}

// TestContrast computes the contrast of every pair of colours that the style
// uses for text, in both themes: 4.5:1 at least (WCAG 2.2, 1.4.3).
func TestContrast(t *testing.T) {
	blocks := regexp.MustCompile(`(?s):root \{(.*?)\}`).FindAllSubmatch(pageStyle, -1)
	if len(blocks) != 2 {
		t.Fatalf("the style has %d themes", len(blocks))
	}
	for i, theme := range []string{"light", "dark"} {
		colours := map[string]float64{}
		for _, m := range regexp.MustCompile(`--([a-z-]+): #([0-9a-f]{6});`).FindAllSubmatch(blocks[i][1], -1) {
			colours[string(m[1])] = luminance(t, string(m[2]))
		}
		for _, row := range []struct {
			back  string
			texts []string
		}{
			{"back", []string{"text", "soft", "link", "good"}},
			{"panel", []string{"text", "soft", "link", "bad"}},
			{"band", []string{"soft"}},
			{"good-back", []string{"good"}},
			{"warn-back", []string{"warn"}},
			{"bad-back", []string{"bad", "text", "soft"}},
			{"plain-back", []string{"soft"}},
		} {
			for _, text := range row.texts {
				a, known := colours[text]
				b, both := colours[row.back]
				if !known || !both {
					t.Fatalf("%s: there is no %s or no %s", theme, text, row.back)
				}
				if ratio := (max(a, b) + 0.05) / (min(a, b) + 0.05); ratio < 4.5 {
					t.Errorf("%s: %s on %s has a contrast of %.2f:1, want 4.5:1", theme, text, row.back, ratio)
				}
			}
		}
	}
}
