// Package schemas holds the JSON Schemas (2020-12) of all events, commands, answers
// and orders, and checks data against them.
//
// A file is named after its type: keryx.turn.started.v1.json. A command's answer has
// ".answer" before the ending; an order to a host or executor is
// keryx.order.<verb>.v1. The schemas are made from the data structs of package events
// by go generate, and a test there keeps struct, schema and golden file together.
// asyncapi.yaml, made by it too, has the subjects they go over; openapi.yaml the HTTP edge.
//
// Schemas of events allow unknown fields, so that an older reader takes what a newer
// writer says. Schemas of commands do not: a misspelt field is an error, not a
// silent default.
package schemas
