package broker_test

import (
	"testing"
	"time"

	"keryx/internal/bustest"
)

func TestSmoke(t *testing.T) {
	began := time.Now()
	b := bustest.Broker(t)
	t.Log(b.URL(), time.Since(began))
	bustest.Connect(t, b, bustest.Principal(t, b, "main", "shell", "host"))
}
