package bridge

import (
	"net/url"
	"strings"

	"keryx/events"
)

// origins tells where messages of one account come from, by the names under which the bus
// knows them.
type origins struct {
	kind    string
	account events.AccountName
}

// escape keeps colons, which part the fields, out of a field.
func escape(s string) string { return strings.ReplaceAll(url.PathEscape(s), ":", "%3A") }

func unescape(s string) (string, bool) {
	out, err := url.PathUnescape(s)
	return out, err == nil
}

// key is the gateway session key of a place.
func (o origins) key(p events.Place) events.GatewaySessionKey {
	k := o.kind + ":" + string(o.account) + ":" + escape(p.Chat)
	if p.Thread != "" {
		k += ":" + escape(p.Thread)
	}
	return events.GatewaySessionKey(k)
}

// place is that of a gateway session key; ok is false for keys of others.
func (o origins) place(k events.GatewaySessionKey) (p events.Place, ok bool) {
	rest, ok := strings.CutPrefix(string(k), o.kind+":"+string(o.account)+":")
	if !ok {
		return p, false
	}
	chat, thread, threaded := strings.Cut(rest, ":")
	if p.Chat, ok = unescape(chat); !ok || p.Chat == "" || strings.Contains(thread, ":") {
		return p, false
	}
	if threaded {
		if p.Thread, ok = unescape(thread); !ok || p.Thread == "" {
			return p, false
		}
	}
	return p, ok
}

// idempotency is the key under which a message is submitted: it says where it was said.
func (o origins) idempotency(p events.Place, message string) string {
	return "gw:" + o.kind + ":" + string(o.account) + ":" + escape(p.Chat) + ":" + escape(p.Thread) + ":" + escape(message)
}

// said is the place of a message with this idempotency key; ok is false for those of
// others.
func (o origins) said(key string) (p events.Place, ok bool) {
	rest, ok := strings.CutPrefix(key, "gw:"+o.kind+":"+string(o.account)+":")
	fields := strings.Split(rest, ":")
	if !ok || len(fields) != 3 {
		return p, false
	}
	chat, okChat := unescape(fields[0])
	thread, okThread := unescape(fields[1])
	return events.Place{Chat: chat, Thread: thread}, okChat && okThread && chat != ""
}
