package client

import (
	"context"
	"iter"

	"keryx/events"
)

func ask[A any](ctx context.Context, c *Conn, t events.Type, data any) (A, error) {
	var a A
	err := c.Do(ctx, t, data, &a)
	return a, err
}

// Register returns the session with these names, made now if nobody has any of them.
func (c *Conn) Register(ctx context.Context, names events.Names, p events.Policy) (events.Registered, error) {
	return ask[events.Registered](ctx, c, events.CmdSessionRegister, events.Register{Names: names, Policy: p})
}

// Alias adds names to the session that to, an id or a name, means.
func (c *Conn) Alias(ctx context.Context, to string, names events.Names) (events.Registered, error) {
	return ask[events.Registered](ctx, c, events.CmdSessionAlias, events.Alias{To: to, Names: names})
}

// Attach makes this instance the driver of a session. [Conn.ServeHost] does it for
// hosts that need nothing special.
func (c *Conn) Attach(ctx context.Context, a events.Attach) (events.Attached, error) {
	a.Instance = c.cfg.Instance
	return ask[events.Attached](ctx, c, events.CmdSessionAttach, a)
}

// Detach gives a session back.
func (c *Conn) Detach(ctx context.Context, id events.SessionID, fence events.Fence) error {
	return c.Do(ctx, events.CmdSessionDetach, events.Detach{Session: id, Fence: fence}, nil)
}

// Reanchor moves a session to a new stored id.
func (c *Conn) Reanchor(ctx context.Context, r events.Reanchor) (events.Registered, error) {
	return ask[events.Registered](ctx, c, events.CmdSessionReanchor, r)
}

// Reset finalizes a session's open epoch and opens the next. It waits until a running
// turn has been interrupted.
func (c *Conn) Reset(ctx context.Context, to, reason string) (events.EpochAnswer, error) {
	return ask[events.EpochAnswer](ctx, c, events.CmdSessionReset, events.Reset{To: to, Reason: reason})
}

// Finalize ends a session's open epoch.
func (c *Conn) Finalize(ctx context.Context, to, reason string) (events.EpochAnswer, error) {
	return ask[events.EpochAnswer](ctx, c, events.CmdSessionFinalize, events.Finalize{To: to, Reason: reason})
}

// Forget removes a session; see [events.Forget].
func (c *Conn) Forget(ctx context.Context, id events.SessionID, reason string) error {
	_, err := ask[events.Done](ctx, c, events.CmdSessionForget, events.Forget{Session: id, Reason: reason})
	return err
}

// Interrupt has the running turn aborted and returns how it ended. A turn that is named
// and no longer runs is left alone.
func (c *Conn) Interrupt(ctx context.Context, to string, turn events.TurnID, reason string) (events.Ended, error) {
	return ask[events.Ended](ctx, c, events.CmdTurnInterrupt, events.Interrupt{To: to, Turn: turn, Reason: reason})
}

// Submit puts a message into a session.
func (c *Conn) Submit(ctx context.Context, s events.Submit) (events.Receipt, error) {
	return ask[events.Receipt](ctx, c, events.CmdContinuationSubmit, s)
}

// Receipt tells where an item stands.
func (c *Conn) Receipt(ctx context.Context, id events.ReceiptID) (events.Receipt, error) {
	return ask[events.Receipt](ctx, c, events.CmdContinuationReceipt, events.ReceiptShow{ID: id})
}

// Cancel takes back an item that was not accepted.
func (c *Conn) Cancel(ctx context.Context, id events.ReceiptID, reason string) (events.Receipt, error) {
	return ask[events.Receipt](ctx, c, events.CmdContinuationCancel, events.Cancel{Receipt: id, Reason: reason})
}

// Edit gives an item that was not accepted another body.
func (c *Conn) Edit(ctx context.Context, id events.ReceiptID, body events.Body) (events.Receipt, error) {
	return ask[events.Receipt](ctx, c, events.CmdContinuationEdit, events.Edit{Receipt: id, Body: body})
}

// Requeue puts an unresolved item back to the head of the queue, or releases a held one.
func (c *Conn) Requeue(ctx context.Context, id events.ReceiptID) (events.Receipt, error) {
	return ask[events.Receipt](ctx, c, events.CmdContinuationRequeue, events.Requeue{Receipt: id})
}

// Discard ends an unresolved item.
func (c *Conn) Discard(ctx context.Context, id events.ReceiptID, reason string) (events.Receipt, error) {
	return ask[events.Receipt](ctx, c, events.CmdContinuationDiscard, events.Discard{Receipt: id, Reason: reason})
}

// Turns yields the turns of a session, newest first, without their replies. The sequence
// ends after the first error.
func (c *Conn) Turns(ctx context.Context, to string) iter.Seq2[events.TurnView, error] {
	return func(yield func(events.TurnView, error) bool) {
		for q := (events.TurnList{To: to}); ; {
			page, err := ask[events.TurnPage](ctx, c, events.CmdTurnList, q)
			if err != nil {
				yield(events.TurnView{}, err)
				return
			}
			for _, t := range page.Turns {
				if !yield(t, nil) {
					return
				}
				q.Before = t.Turn
			}
			if !page.More || len(page.Turns) == 0 {
				return
			}
		}
	}
}

// Turn tells what is known of a turn, at any time.
func (c *Conn) Turn(ctx context.Context, id events.TurnID) (events.TurnView, error) {
	return ask[events.TurnView](ctx, c, events.CmdTurnShow, events.TurnShow{Turn: id})
}

// Show returns a session's folded state.
func (c *Conn) Show(ctx context.Context, to string) (events.SessionView, error) {
	return ask[events.SessionView](ctx, c, events.CmdSessionShow, events.SessionShow{To: to})
}

// Sessions yields the sessions of the profile in order of their ids, page by page. The
// sequence ends after the first error.
func (c *Conn) Sessions(ctx context.Context, q events.SessionList) iter.Seq2[events.SessionSummary, error] {
	return func(yield func(events.SessionSummary, error) bool) {
		for {
			page, err := ask[events.Sessions](ctx, c, events.CmdSessionList, q)
			if err != nil {
				yield(events.SessionSummary{}, err)
				return
			}
			for _, s := range page.Sessions {
				if !yield(s, nil) {
					return
				}
				q.After = s.Session
			}
			if !page.More {
				return
			}
		}
	}
}

// SelectTarget returns what pins a target as it is now. It starts nothing.
func (c *Conn) SelectTarget(ctx context.Context, name events.TargetName) (events.Selection, error) {
	return ask[events.Selection](ctx, c, events.CmdTargetSelect, events.SelectTarget{Name: name})
}

// Targets returns the profile's targets, with what is known of each.
func (c *Conn) Targets(ctx context.Context) (events.Targets, error) {
	return ask[events.Targets](ctx, c, events.CmdTargetList, events.TargetList{})
}

// ControlTarget takes over who may type into a target's terminals, or gives it back.
func (c *Conn) ControlTarget(ctx context.Context, t events.ControlTarget) (events.Selection, error) {
	return ask[events.Selection](ctx, c, events.CmdTargetControl, t)
}

// RegisterTarget declares a target under a lease that this instance holds.
func (c *Conn) RegisterTarget(ctx context.Context, spec events.TargetSpec, fence events.Fence) (events.Selection, error) {
	return ask[events.Selection](ctx, c, events.CmdTargetRegister, events.RegisterTarget{Spec: spec, Instance: c.cfg.Instance, LeaseFence: fence})
}

// WithdrawTarget takes a target back.
func (c *Conn) WithdrawTarget(ctx context.Context, name events.TargetName, reason string) error {
	return c.Do(ctx, events.CmdTargetWithdraw, events.WithdrawTarget{Name: name, Instance: c.cfg.Instance, Reason: reason}, nil)
}

// ReportTarget says that the condition of a registered target has changed.
func (c *Conn) ReportTarget(ctx context.Context, r events.ReportTarget) error {
	r.Instance = c.cfg.Instance
	return c.Do(ctx, events.CmdTargetReport, r, nil)
}

// ReportTargetAttached says that a session has an exclusive target of this instance.
func (c *Conn) ReportTargetAttached(ctx context.Context, r events.ReportTargetAttached) error {
	r.Instance = c.cfg.Instance
	return c.Do(ctx, events.CmdTargetAttached, r, nil)
}

// ReportTargetDetached says that a session has it no longer.
func (c *Conn) ReportTargetDetached(ctx context.Context, r events.ReportTargetDetached) error {
	r.Instance = c.cfg.Instance
	return c.Do(ctx, events.CmdTargetDetached, r, nil)
}

// DetachTarget gives an exclusive target back, for the session that has it. A host names
// the fence of that session, an operator none. The error is *[events.Error] with code busy
// while commands of the session run there.
func (c *Conn) DetachTarget(ctx context.Context, name events.TargetName, fence events.Fence) error {
	return c.Do(ctx, events.CmdTargetDetach, events.DetachTarget{Name: name, Fence: fence}, nil)
}

// StartExec runs a command for a session in a selected target.
func (c *Conn) StartExec(ctx context.Context, s events.StartExec) (events.ExecAnswer, error) {
	return ask[events.ExecAnswer](ctx, c, events.CmdExecStart, s)
}

// StopExec asks for the end of an exec's process tree.
func (c *Conn) StopExec(ctx context.Context, s events.StopExec) (events.ExecAnswer, error) {
	return ask[events.ExecAnswer](ctx, c, events.CmdExecStop, s)
}

// AddToken makes a bearer token of the HTTP edge known.
func (c *Conn) AddToken(ctx context.Context, a events.AddToken) (events.TokenView, error) {
	return ask[events.TokenView](ctx, c, events.CmdTokenAdd, a)
}

// RevokeToken ends a bearer token for good.
func (c *Conn) RevokeToken(ctx context.Context, name events.TokenName, reason string) (events.TokenView, error) {
	return ask[events.TokenView](ctx, c, events.CmdTokenRevoke, events.RevokeToken{Name: name, Reason: reason})
}

// Tokens returns the profile's bearer tokens, ended ones included.
func (c *Conn) Tokens(ctx context.Context) ([]events.TokenView, error) {
	a, err := ask[events.Tokens](ctx, c, events.CmdTokenList, events.TokenList{})
	return a.Tokens, err
}

// Leases returns the profile's leases on record.
func (c *Conn) Leases(ctx context.Context) ([]events.LeaseView, error) {
	a, err := ask[events.Leases](ctx, c, events.CmdLeaseList, events.LeaseList{})
	return a.Leases, err
}

// RevokeLease takes a lease away from whoever holds it, and returns who that was. The
// error is *[events.Error] with code unknown_lease when nobody holds it. Operators only.
func (c *Conn) RevokeLease(ctx context.Context, key events.LeaseKey, reason string) (events.RevokedLease, error) {
	return ask[events.RevokedLease](ctx, c, events.CmdLeaseRevoke, events.RevokeLease{Key: key, Reason: reason})
}

// Tips returns the newest positions of scopes, or, with none named, of all scopes of
// the profile.
func (c *Conn) Tips(ctx context.Context, scopes ...events.Scope) ([]events.Tip, error) {
	const most = 1000 // a call
	var out []events.Tip
	for len(scopes) > most {
		a, err := ask[events.Tips](ctx, c, events.CmdLogTips, events.LogTips{Scopes: scopes[:most]})
		if err != nil {
			return nil, err
		}
		out, scopes = append(out, a.Tips...), scopes[most:]
	}
	for q := (events.LogTips{Scopes: scopes}); ; {
		a, err := ask[events.Tips](ctx, c, events.CmdLogTips, q)
		if err != nil {
			return nil, err
		}
		out = append(out, a.Tips...)
		if !a.More || len(a.Tips) == 0 {
			return out, nil
		}
		q.After = a.Tips[len(a.Tips)-1].Scope
	}
}

// RecordGateway puts what passed between a platform and a session on an account's record.
func (c *Conn) RecordGateway(ctx context.Context, r events.RecordGateway) error {
	r.Instance = c.cfg.Instance
	return c.Do(ctx, events.CmdGatewayRecord, r, nil)
}
