package schemas

//go:generate go run ./internal/gen -source ../events -out .
//go:generate go run ./internal/openapi -out openapi.yaml
