package gateway

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"keryx/events"
)

// packageCommands are the slash commands of the packages that are in effect here; none when
// the bus does not say.
func (c *Chat) packageCommands(ctx context.Context) (out []events.PackageCommand) {
	all, err := c.conn.Packages(ctx, string(c.session))
	if err != nil {
		return nil
	}
	for _, p := range all {
		if p.InEffect != nil && *p.InEffect {
			out = append(out, p.Package.Commands...)
		}
	}
	return out
}

// invokePackage starts what a slash command of a package stands for, in the background and
// in the operator's name, as [Chat.Background] does. What follows the command's name
// becomes the last argument.
func (c *Chat) invokePackage(ctx context.Context, line string, async bool) (events.InvocationView, error) {
	name, args, _ := slashed(line)
	all := c.packageCommands(ctx)
	i := slices.IndexFunc(all, func(cmd events.PackageCommand) bool { return cmd.Name == string(name) })
	if i < 0 {
		return events.InvocationView{}, errors.New(unknownCommand(line))
	}
	said, err := c.startOf(ctx, all[i], strings.TrimSpace(args))
	if err == nil && async {
		c.say(ctx, said)
	}
	return events.InvocationView{Name: name, Reply: said}, err
}

func (c *Chat) startOf(ctx context.Context, cmd events.PackageCommand, args string) (string, error) {
	if c.cfg.Operator == nil {
		return "", errNoOperator
	}
	sel, err := c.cfg.Operator.SelectTarget(ctx, cmd.Target)
	if err != nil {
		return "", fmt.Errorf("start /%s: %w", cmd.Name, err)
	}
	argv := slices.Clone(cmd.Command)
	if args != "" {
		argv = append(argv, args)
	}
	a, err := c.cfg.Operator.StartExec(ctx, events.StartExec{Session: c.session, Selection: sel, Spec: events.ExecSpec{Argv: argv, Background: true}})
	if err != nil {
		return "", fmt.Errorf("start /%s: %w", cmd.Name, err)
	}
	return fmt.Sprintf("/%s is job %s; /kill %s ends it", cmd.Name, ending(a.Exec), ending(a.Exec)), nil
}
