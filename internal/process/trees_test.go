package process_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"keryx/internal/process"
)

// runsVar is how often each kind of tree is run; a release is tried with 500.
const runsVar = "KERYX_TEST_RUNS"

func runs(t *testing.T) int {
	t.Helper()
	v, ok := os.LookupEnv(runsVar)
	if !ok {
		return 8
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < 1 {
		t.Fatalf("%s=%q is not a number of runs", runsVar, v)
	}
	return n
}

// trees are those that get away from whoever kills a process, or a group, or a session.
// NAP is a sleep that no other tree has.
var trees = map[string]string{
	"setsid":      `setsid NAP & (setsid NAP &) ; exit 0`,
	"double fork": `(NAP &) ; (sh -c 'NAP &' &) ; (setsid sh -c 'NAP & NAP &' &) ; exit 0`,
	"ignore TERM": `trap "" TERM; NAP & (setsid NAP &) ; NAP`,
	"daemonize": `(cd / && exec setsid sh -c 'exec </dev/null >/dev/null 2>&1
(umask 0; NAP & setsid NAP &) & exit 0' &) ; exit 0`,
	"env -i":            `env -i setsid NAP & (env -i setsid sh -c 'env -i NAP & exit 0' &) ; exit 0`,
	"fork while killed": `trap "" TERM; while :; do (NAP & setsid NAP & env -i setsid NAP &) ; done`,
}

func TestNoTreeSurvives(t *testing.T) {
	t.Parallel()
	n := runs(t)
	for name, script := range trees {
		for how, way := range ways {
			t.Run(name+" "+how, func(t *testing.T) {
				t.Parallel()
				for i := range n {
					t.Run(strconv.Itoa(i), func(t *testing.T) {
						oneTree(t, script, i%2 == 0, way.prepare, func(got process.Exit) bool { return got.Cleanup == way.want })
					})
				}
			})
		}
	}
}

// oneTree runs a tree. When quiet, it does not hold the output open.
func oneTree(t *testing.T, script string, quiet bool, prepare func(*testing.T, *process.Spec), ok func(process.Exit) bool) {
	t.Helper()
	nap := fmt.Sprintf("sleep 3600.%09d", time.Now().UnixNano()%1e9)
	command := nap
	if quiet {
		command += " >/dev/null 2>&1"
	}
	spec := process.Spec{Argv: sh(strings.ReplaceAll(script, "NAP", command)), Grace: ptr(20 * time.Millisecond), Timeout: 60 * time.Millisecond}
	prepare(t, &spec)
	got, _ := run(t, spec, 20*time.Second)
	if !ok(got) || len(got.LeftPIDs) > 0 {
		t.Errorf("exit is %+v", got)
	}
	if left := named(nap); len(left) > 0 {
		t.Errorf("the exit said %s, and %q live", got.Cleanup, left)
	}
}

// named returns the processes whose arguments are those, unless they have ended.
func named(args string) (pids []string) {
	want := strings.ReplaceAll(args, " ", "\x00") + "\x00"
	dirs, _ := os.ReadDir("/proc")
	for _, d := range dirs {
		if b, err := os.ReadFile("/proc/" + d.Name() + "/cmdline"); err == nil && string(b) == want {
			pids = append(pids, d.Name())
		}
	}
	return pids
}
