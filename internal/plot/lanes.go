package plot

import (
	"fmt"
	"math"
)

// The measures of lanes.
const (
	laneGap   = 6  // between data and lanes
	laneLabel = 17 // above the marks of a lane
	markHalf  = 1  // half the width of a mark of failures
)

// laneHeight returns the height of the marks in each of so many lanes.
func laneHeight(lanes int) float64 {
	return min(max(5, 140/float64(lanes)), 16)
}

// lanesHeight returns the height of all of them, with a gap above.
func lanesHeight(lanes int) float64 {
	if lanes == 0 {
		return 0
	}
	return laneGap + float64(lanes)*(laneLabel+laneHeight(lanes))
}

// drawLanes draws the failures of each line that has some below its name, marks
// of such a height at most.
func (s *sheet) drawLanes(x timeAxis, tracks []track, height float64) {
	columns := int((s.frame.right - s.frame.left) / (2 * markHalf))
	most := uint64(0)
	counts := make([][]uint64, len(tracks))
	for i, t := range tracks {
		if t.failed == 0 {
			continue
		}
		counts[i] = make([]uint64, columns)
		for _, f := range t.failures {
			c := min(int(x.at(f.At)*float64(columns)), columns-1)
			counts[i][c] = addUp(counts[i][c], f.Count)
			most = max(most, counts[i][c])
		}
	}
	top := s.dataBottom() + laneGap
	for i, count := range counts {
		if count == nil {
			continue
		}
		s.canvas.lines(stroke{color: s.grid, width: 1}, [][]point{{{s.frame.left, top}, {s.frame.right, top}}})
		label := fmt.Sprintf("%s: %d failed", tracks[i].name, tracks[i].failed)
		s.canvas.text(s.soft, textSize, start, point{s.frame.left + 5, top + 13}, fit(s.font, textSize, s.frame.right-s.frame.left-5, label))
		top += laneLabel
		bottom := top + height - 1
		var marks []rect
		for c, n := range count {
			if n > 0 {
				tall := (height - 2) * (0.35 + 0.65*math.Log1p(float64(n))/math.Log1p(float64(most)))
				left := s.frame.left + float64(c)*2*markHalf
				marks = append(marks, rect{left, bottom - tall, left + 2*markHalf, bottom})
			}
		}
		s.canvas.fill(s.stroke(i).color, marks)
		top += height
	}
}
