package httpapi

import "net/http"

// Router returns the routes of a server that serves nothing.
func Router() *http.ServeMux {
	s := &Server{routes: table()}
	return s.router()
}

// Routes returns the method and path of each route.
func Routes() []string {
	var out []string
	for _, rt := range table() {
		out = append(out, rt.method+" "+rt.path)
	}
	return out
}
