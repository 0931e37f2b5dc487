package main

import "strings"

// wordList returns words as they are listed in a sentence.
func wordList(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " or " + words[len(words)-1]
}

// nearest returns the word that is most like another one, if it is like one at
// all: at most two characters, and less than half of them, are to be changed.
func nearest(word string, words []string) (string, bool) {
	best, distance := "", min(3, (len(strings.TrimLeft(word, "-"))+1)/2)
	for _, w := range words {
		if n := edits(word, w); n < distance {
			best, distance = w, n
		}
	}
	return best, best != ""
}

// edits returns how many characters must be added, removed or replaced, or two
// neighbours exchanged, to turn a into b (Damerau 1964, each place once).
func edits(a, b string) int {
	var before []int
	last, row := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = min(last[j]+cost, last[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last, row = last, row, make([]int, len(b)+1)
	}
	return last[len(b)]
}
