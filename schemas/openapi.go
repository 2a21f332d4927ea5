package schemas

import _ "embed" // for OpenAPI

// OpenAPI is the description of the HTTP edge, OpenAPI 3.1 in YAML. Its schemas refer to
// the files of [FS].
//
//go:embed openapi.yaml
var OpenAPI []byte
