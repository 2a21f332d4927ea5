package targetfile

import (
	"math"
	"time"

	"github.com/goccy/go-yaml/ast"
)

// value reads a node into what it was made for.
type value func(ast.Node) *Error

// fields are the keys of a mapping.
type fields map[string]value

// lines remembers where each value stands, by JSON pointer.
type lines map[string]ast.Node

// mapping reads a mapping of known keys. It remembers the values below prefix.
func (l lines) mapping(prefix string, known fields) value {
	return func(n ast.Node) *Error {
		return each(n, func(key string, k, v ast.Node) *Error {
			read, ok := known[key]
			if !ok {
				return at(k, "unknown key %q", key)
			}
			l[prefix+"/"+key] = v
			return read(v)
		})
	}
}

// each calls fn for the entries of a mapping.
func each(n ast.Node, fn func(key string, k, v ast.Node) *Error) *Error {
	var entries []*ast.MappingValueNode
	switch n := n.(type) {
	case *ast.MappingNode:
		entries = n.Values
	case *ast.MappingValueNode:
		entries = []*ast.MappingValueNode{n}
	default:
		return wrong(n, "keys with values")
	}
	for _, e := range entries {
		var key string
		if err := text(&key)(e.Key); err != nil {
			return err
		}
		if err := fn(key, e.Key, e.Value); err != nil {
			return err
		}
	}
	return nil
}

// wrong says that a node is not what is expected.
func wrong(n ast.Node, want string) *Error {
	if n == nil || n.Type() == ast.NullType {
		return at(n, "there is no value; %s expected", want)
	}
	return at(n, "this is %s; %s expected", kinds[n.Type()], want)
}

// kinds names the types of nodes.
var kinds = map[ast.NodeType]string{
	ast.IntegerType: "a number (quote it to make it text)", ast.FloatType: "a number (quote it to make it text)",
	ast.InfinityType: "a number (quote it to make it text)", ast.NanType: "a number (quote it to make it text)",
	ast.StringType: "text", ast.LiteralType: "text", ast.BoolType: "true or false (quote it to make it text)",
	ast.MappingType: "keys with values", ast.MappingValueType: "keys with values", ast.SequenceType: "a list",
	ast.AnchorType: "an anchor", ast.AliasType: "an alias", ast.TagType: "a tag", ast.MergeKeyType: "a merge key",
}

func text[T ~string](to *T) value {
	return func(n ast.Node) *Error {
		switch n := n.(type) {
		case *ast.StringNode:
			*to = T(n.Value)
		case *ast.LiteralNode:
			*to = T(n.Value.Value)
		default:
			return wrong(n, "text")
		}
		return nil
	}
}

func flag(to *bool) value {
	return func(n ast.Node) *Error {
		b, ok := n.(*ast.BoolNode)
		if !ok {
			return wrong(n, "true or false")
		}
		*to = b.Value
		return nil
	}
}

func integer(to *int64) value {
	return func(n ast.Node) *Error {
		i, ok := n.(*ast.IntegerNode)
		if !ok {
			return wrong(n, "a whole number")
		}
		switch v := i.Value.(type) {
		case int64:
			*to = v
			return nil
		case uint64:
			if v <= math.MaxInt64 {
				*to = int64(v)
				return nil
			}
		}
		return at(n, "the number is too large")
	}
}

// milli reads a number into thousandths.
func milli(to *int64) value {
	return func(n ast.Node) *Error {
		f, ok := n.(*ast.FloatNode)
		if !ok {
			if err := integer(to)(n); err != nil {
				return wrong(n, "a number")
			}
			*to *= 1000
			return nil
		}
		*to = int64(math.Round(f.Value * 1000))
		if f.Value < 0 || f.Value > math.MaxInt32 {
			return at(n, "the number is out of bounds")
		}
		return nil
	}
}

// milliseconds reads a duration such as 10s.
func milliseconds(to *int64) value {
	return func(n ast.Node) *Error {
		var s string
		if err := text(&s)(n); err != nil {
			return wrong(n, `a time such as "10s"`)
		}
		d, err := time.ParseDuration(s)
		if err != nil || d <= 0 {
			return at(n, `%q is not a time such as "10s"`, s)
		}
		*to = d.Milliseconds()
		return nil
	}
}

// list reads a list, remembering its elements below prefix.
func list[T any](l lines, prefix string, to *[]T, element func(place string, to *T) value) value {
	return func(n ast.Node) *Error {
		seq, ok := n.(*ast.SequenceNode)
		if !ok {
			return wrong(n, "a list")
		}
		for i, v := range seq.Values {
			place := index(prefix, i)
			l[place] = v
			var e T
			if err := element(place, &e)(v); err != nil {
				return err
			}
			*to = append(*to, e)
		}
		return nil
	}
}

// texts reads a list of texts.
func texts(l lines, prefix string, to *[]string) value {
	return list(l, prefix, to, func(_ string, s *string) value { return text(s) })
}

// table reads a mapping of any keys to texts.
func table(l lines, prefix string, to *map[string]string) value {
	return func(n ast.Node) *Error {
		*to = map[string]string{}
		return each(n, func(key string, _, v ast.Node) *Error {
			l[prefix+"/"+key] = v
			var s string
			if err := text(&s)(v); err != nil {
				return err
			}
			(*to)[key] = s
			return nil
		})
	}
}

// part reads a mapping into a structure that is absent without one.
func part[T any](to **T, read func(*T) value) value {
	return func(n ast.Node) *Error {
		*to = new(T)
		return read(*to)(n)
	}
}
