package gslb

// Ready implements ready.Readiness. The ready plugin keeps one entry for each
// plugin name in the process, so any instance answers for all of them.
func (g *GSLB) Ready() bool { return running.ready() }
