package client

import (
	"context"

	"keryx/events"
)

// The commands below are those of hosts and executors that do themselves what
// [Conn.ServeHost] and [Keeper] do.

// Accept takes an offer as a turn, which may begin once this has returned.
func (c *Conn) Accept(ctx context.Context, a events.Accept) (events.Accepted, error) {
	return ask[events.Accepted](ctx, c, events.CmdTurnAccept, a)
}

// Decline gives an offer back; its items are offered again later.
func (c *Conn) Decline(ctx context.Context, d events.Decline) error {
	return c.Do(ctx, events.CmdTurnDecline, d, nil)
}

// End reports how a turn ended.
func (c *Conn) End(ctx context.Context, e events.End) (events.Ended, error) {
	return ask[events.Ended](ctx, c, events.CmdTurnEnd, e)
}

// ReportStarted says that an exec's process runs.
func (c *Conn) ReportStarted(ctx context.Context, r events.ReportStarted) error {
	r.Instance = c.cfg.Instance
	return c.Do(ctx, events.CmdExecReportStarted, r, nil)
}

// ReportRefused says that an exec's process never ran.
func (c *Conn) ReportRefused(ctx context.Context, r events.ReportRefused) error {
	r.Instance = c.cfg.Instance
	return c.Do(ctx, events.CmdExecReportRefused, r, nil)
}

// ReportExited says how an exec ended.
func (c *Conn) ReportExited(ctx context.Context, r events.ReportExited) error {
	r.Instance = c.cfg.Instance
	return c.Do(ctx, events.CmdExecReportExited, r, nil)
}

// ReportLost says that an exec of a former instance of this executor is gone.
func (c *Conn) ReportLost(ctx context.Context, r events.ReportLost) error {
	return c.Do(ctx, events.CmdExecReportLost, r, nil)
}

// AcquireLease asks for a lease, for this instance.
func (c *Conn) AcquireLease(ctx context.Context, a events.AcquireLease) (events.LeaseAnswer, error) {
	a.Instance = c.cfg.Instance
	return ask[events.LeaseAnswer](ctx, c, events.CmdLeaseAcquire, a)
}

// RenewLeases extends leases of this instance. Each has a result of its own.
func (c *Conn) RenewLeases(ctx context.Context, refs ...events.LeaseRef) ([]events.LeaseRenewal, error) {
	a, err := ask[events.LeaseRenewals](ctx, c, events.CmdLeaseRenew, events.RenewLease{Instance: c.cfg.Instance, Leases: refs})
	return a.Results, err
}

// ReleaseLease gives a lease of this instance back.
func (c *Conn) ReleaseLease(ctx context.Context, ref events.LeaseRef) error {
	return c.Do(ctx, events.CmdLeaseRelease, events.ReleaseLease{Key: ref.Key, Instance: c.cfg.Instance, Fence: ref.Fence}, nil)
}

// StoredOutput tells what the bus has of an exec's output; with audit also which chunks
// are missing, at the cost of a read of all.
func (c *Conn) StoredOutput(ctx context.Context, session events.SessionID, exec events.ExecID, audit bool) (events.OutputPage, error) {
	return ask[events.OutputPage](ctx, c, events.CmdExecOutput, events.Output{Session: session, Exec: exec, TipOnly: true, Audit: audit})
}
