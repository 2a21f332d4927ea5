package schemas

//go:generate go run ./internal/gen -source ../events -out .
