package schemas

import _ "embed" // for the documents

// OpenAPI is the description of the HTTP edge, OpenAPI 3.1 in YAML. Its schemas refer to
// the files of [FS].
//
//go:embed openapi.yaml
var OpenAPI []byte

// AsyncAPI is the description of the subjects of the bus, AsyncAPI 3.0 in YAML. Its
// payloads refer to the files of [FS].
//
//go:embed asyncapi.yaml
var AsyncAPI []byte
