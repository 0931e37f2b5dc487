package probe

const backlogPage = 128

// backlog is a first-in, first-out queue of ticks in pages, so that it grows
// without copying and what it grew by is given back. A tick that was refused
// goes back to its front.
type backlog struct {
	first, last *backlogChunk
	head        int // index of the oldest tick in first
	tail        int // index behind the newest tick in last
	size        int
	spare       *backlogChunk
}

type backlogChunk struct {
	ticks [backlogPage]Tick
	next  *backlogChunk
}

func (b *backlog) len() int { return b.size }

func (b *backlog) push(t Tick) {
	if b.last == nil || b.tail == backlogPage {
		page := b.spare
		b.spare = nil
		if page == nil {
			page = new(backlogChunk)
		}
		if b.last == nil {
			b.first = page
		} else {
			b.last.next = page
		}
		b.last, b.tail = page, 0
	}
	b.last.ticks[b.tail] = t
	b.tail++
	b.size++
}

// pushFront puts a tick in front of all others.
func (b *backlog) pushFront(t Tick) {
	if b.size == 0 {
		b.push(t)
		return
	}
	if b.head == 0 {
		b.first = &backlogChunk{next: b.first}
		b.head = backlogPage
	}
	b.head--
	b.first.ticks[b.head] = t
	b.size++
}

// oldest returns the head of a queue that is not empty.
func (b *backlog) oldest() Tick { return b.first.ticks[b.head] }

// pop removes the head of a queue that is not empty.
func (b *backlog) pop() Tick {
	t := b.first.ticks[b.head]
	b.head++
	b.size--
	if b.head == backlogPage || b.size == 0 {
		page := b.first
		b.first, b.head = page.next, 0
		if b.first == nil {
			b.last, b.tail = nil, 0
		}
		page.next = nil
		b.spare = page
	}
	return t
}
