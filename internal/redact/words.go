package redact

import "iter"

// tree finds many texts in another one in a single pass, by the algorithm of Aho and Corasick. Each node stands for the
// start of some of them.
type tree struct {
	next  map[int]int // by key
	nodes []node
}

type node struct {
	fallback int // the node of the longest end of this start that is a start too
	length   int // of the longest text that ends here
}

// newTree makes a tree. It leaves empty texts out.
func newTree(texts []string) *tree {
	t := &tree{map[int]int{}, make([]node, 1)}
	type branch struct {
		at   int
		left string
	}
	var branches []branch
	for _, text := range texts {
		if text != "" {
			branches = append(branches, branch{0, text})
		}
	}
	for depth := 1; len(branches) > 0; depth++ { // level by level, since a fallback is on one above
		longer := branches[:0]
		for _, b := range branches {
			step := key(b.at, b.left[0])
			child, ok := t.next[step]
			if !ok {
				fallback := t.step(t.nodes[b.at].fallback, b.left[0])
				child = len(t.nodes)
				t.next[step], t.nodes = child, append(t.nodes, node{fallback, t.nodes[fallback].length})
			}
			if len(b.left) == 1 {
				t.nodes[child].length = depth
			} else {
				longer = append(longer, branch{child, b.left[1:]})
			}
		}
		branches = longer
	}
	return t
}

// find yields where texts of the tree stand in a text, from the first byte to behind the last, in the order of their
// ends. Of those that end together it yields the longest. Upper and lower case of ASCII match each other.
func (t *tree) find(text []byte) iter.Seq2[int, int] {
	return func(yield func(from, to int) bool) {
		at := 0
		for i, c := range text {
			at = t.step(at, c)
			if length := t.nodes[at].length; length > 0 && !yield(i+1-length, i+1) {
				return
			}
		}
	}
}

func (t *tree) step(at int, char byte) int {
	for {
		if child, ok := t.next[key(at, char)]; ok || at == 0 {
			return child
		}
		at = t.nodes[at].fallback
	}
}

// key drops the bit in which upper and lower case differ. Some other bytes differ in it alone and match each other too.
func key(node int, char byte) int { return node<<8 | int(char|0x20) }
