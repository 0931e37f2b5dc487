package probe

// idleList holds the links with a free slot, the one that has waited longest
// first.
type idleList struct{ first, last *Link }

func (i *idleList) oldest() *Link { return i.first }

func (i *idleList) add(l *Link) {
	if l.listed {
		return
	}
	l.listed = true
	l.prev, l.next = i.last, nil
	if i.last == nil {
		i.first = l
	} else {
		i.last.next = l
	}
	i.last = l
}

func (i *idleList) drop(l *Link) {
	if !l.listed {
		return
	}
	if l.prev == nil {
		i.first = l.next
	} else {
		l.prev.next = l.next
	}
	if l.next == nil {
		i.last = l.prev
	} else {
		l.next.prev = l.prev
	}
	l.listed, l.prev, l.next = false, nil, nil
}

// take removes one slot of l, which goes to the end while it has more.
func (i *idleList) take(l *Link) {
	i.drop(l)
	if l.busy+1 < l.slots {
		i.add(l)
	}
}
