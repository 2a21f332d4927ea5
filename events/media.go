package events

import (
	"mime"
	"strings"
)

const (
	mediaJSON        = "application/json"
	mediaCloudEvents = "application/cloudevents"
)

// payloadKind is how the JSON event format carries a payload.
type payloadKind int

const (
	payloadBinary payloadKind = iota // as base64
	payloadJSON                      // as it is
	payloadText                      // as a string
)

// payloadOf returns how a content type is carried, and whether its text is known to
// be UTF-8 or a part of it. No content type means JSON.
func payloadOf(contentType string) (kind payloadKind, utf8 bool) {
	if contentType == "" || contentType == mediaJSON {
		return payloadJSON, true
	}
	media, params, err := mime.ParseMediaType(contentType)
	if err != nil {
		return payloadBinary, false
	}
	switch strings.ToLower(params["charset"]) {
	case "", "utf-8", "us-ascii":
		utf8 = true
	}
	switch {
	case strings.HasSuffix(media, "/json"), strings.HasSuffix(media, "+json"):
		return payloadJSON, utf8
	case strings.HasPrefix(media, "text/"):
		return payloadText, utf8
	}
	return payloadBinary, utf8
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}
