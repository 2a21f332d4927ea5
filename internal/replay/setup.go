package replay

import (
	"fmt"
	"strings"

	"keryx/events"
)

func tellPackageAdded(d events.PackageAdded) (string, tone) {
	text := fmt.Sprintf("%s %s from %s, %s", d.Package.Key, d.Package.Version, d.Package.Source, count(len(d.Package.Files), "file"))
	if d.Enabled {
		text += ", enabled"
	}
	return text, plain
}

func tellPackages(refs []events.PackageRef) (string, tone) {
	each := make([]string, 0, len(refs))
	for _, r := range refs {
		each = append(each, string(r.Key))
	}
	return count(len(refs), "package") + ": " + strings.Join(each, ", "), plain
}

func tellPackageEnabled(d events.PackageEnabled) (string, tone) { return tellPackages(d.Packages) }

func tellPackageDisabled(d events.PackageDisabled) (string, tone) { return tellPackages(d.Packages) }

func tellPackageRemoved(d events.PackageRemoved) (string, tone) { return tellPackages(d.Packages) }

func tellSetupPlanned(d events.SetupPlanned) (string, tone) {
	text := fmt.Sprintf("%s %s on target %s: %s", d.Plan.Key, d.Plan.Version, d.Plan.Target, strings.Join(d.Plan.Setup.Command, " "))
	if d.Ask != nil {
		text += ", for session " + string(d.Ask.Session)
	}
	return text, plain
}

func tellSetupConsented(d events.SetupConsented) (string, tone) {
	text := "to revision " + string(d.Revision)
	if d.User != "" {
		text += " by " + d.User
	}
	return text, good
}

func tellSetupStarted(d events.SetupStarted) (string, tone) { return "at " + string(d.Executor), plain }

func tellSetupProgressed(d events.SetupProgressed) (string, tone) {
	text := fmt.Sprintf("%d %%", d.Progress.Percent)
	if d.Progress.Step > 0 {
		text += fmt.Sprintf(", step %d", d.Progress.Step)
	}
	if d.Progress.Total > 0 {
		text += fmt.Sprintf(" of %d", d.Progress.Total)
	}
	if d.Progress.Message != "" {
		text += ": " + d.Progress.Message
	}
	return text, dim
}

func tellSetupSucceeded(d events.SetupSucceeded) (string, tone) {
	return fmt.Sprintf("in %s, installed in %s", milliseconds(d.End.DurationMS), d.Path), good
}

func tellSetupFailed(d events.SetupFailed) (string, tone) {
	return string(d.Code) + ": " + d.Message + treeEnd(d.End), bad
}

func tellSetupCancelRequested(d events.SetupCancelRequested) (string, tone) {
	return "its processes are being stopped" + because(d.Reason), warn
}

func tellSetupCancelled(d events.SetupCancelled) (string, tone) {
	return "nothing was changed" + because(d.Reason) + treeEnd(d.End), warn
}

func because(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + reason
}

// treeEnd says what is known of a setup's processes.
func treeEnd(e *events.SetupEnd) string {
	if e == nil {
		return ""
	}
	text := fmt.Sprintf(" (after %s, cleanup %s", milliseconds(e.DurationMS), e.Cleanup)
	if len(e.LeftPIDs) > 0 {
		text += fmt.Sprintf(", left %v", e.LeftPIDs)
	}
	return text + ")"
}

func tellSetupNotified(d events.SetupNotified) (string, tone) {
	if d.Receipt == "" {
		return fmt.Sprintf("session %s was not told: %s", d.Session, d.Reason), warn
	}
	return fmt.Sprintf("session %s, receipt %s", d.Session, d.Receipt), plain
}
