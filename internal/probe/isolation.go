package probe

// BeaconReply is what the beacons last said.
type BeaconReply uint8

// The replies of beacons. BeaconsUnknown: they were not asked lately.
const (
	BeaconsUnknown BeaconReply = iota
	BeaconsAnswer              // at least one does
	BeaconsSilent              // none does
)

// Vantage is what Isolation is judged by.
type Vantage struct {
	Endpoints int // all
	Turned    int // those that turned down within one interval
	Passing   int // those whose last result was no failure
	Beacons   BeaconReply
}

// Isolation tells an outage of everything from one of our own connection. A
// vantage is isolated once more than half of all endpoints turned down within
// one interval while no beacon answers. It is no longer once a beacon answers or
// more than half of the endpoints pass. The zero value is not isolated. It must
// not be used by two goroutines at once.
type Isolation struct{ isolated bool }

// Observe judges anew, and tells whether that changed anything.
func (i *Isolation) Observe(v Vantage) (changed bool) {
	was := i.isolated
	if was {
		i.isolated = v.Beacons != BeaconsAnswer && 2*v.Passing <= v.Endpoints && v.Endpoints > 0
	} else {
		i.isolated = v.Beacons == BeaconsSilent && 2*v.Turned > v.Endpoints
	}
	return i.isolated != was
}

// Isolated tells what Observe came to last.
func (i *Isolation) Isolated() bool { return i.isolated }
