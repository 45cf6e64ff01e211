package sim

// The regions of the scenarios. Where demand changes it does at Shock.
const (
	A = iota
	B
	C
	Shock = 600
)

// three are three regions, each the home of one list, with the order of distance.
func three(sc *Scenario, caps, demand [3]float64) {
	for r, name := range []string{"A", "B", "C"} {
		sc.Regions = append(sc.Regions, Region{Name: name, Capacity: caps[r]})
	}
	sc.Lists = [][]int{{A, B, C}, {B, C, A}, {C, B, A}}
	sc.Demand = demand[:]
}

// death has region A die at Shock; servers know after detection, 40 s.
func (sc *Scenario) death() {
	sc.Events = append(sc.Events,
		Event{Shock, func(c *Controls) { c.Dead[A] = true }},
		Event{Shock + 40, func(c *Controls) { c.Health[A] = 0 }})
}

// Cascade is the death of A, which has 40 of 90, with the given room elsewhere.
// Limits are the hard capacities, so that the figures are those of the arithmetic.
func Cascade(name string, b, c float64) Scenario {
	sc := Base(name)
	three(&sc, [3]float64{48, b, c}, [3]float64{40, 30, 20})
	for r := range sc.Regions {
		sc.Regions[r].Target = 1
	}
	sc.death()
	return sc
}

// Surge is a step of A's demand from 40 to 60, with 48, 36 and 36 of capacity and
// 20 of demand at B and C each.
func Surge(name string) Scenario {
	sc := Base(name)
	three(&sc, [3]float64{48, 36, 36}, [3]float64{40, 20, 20})
	sc.Events = append(sc.Events, Event{Shock, func(c *Controls) { c.Demand[A] = 60 }})
	return sc
}

// Recovery is Cascade with room, after which A comes back with a ramp of its dial
// by a tenth each minute.
func Recovery() Scenario {
	sc := Cascade("recovery", 50, 50)
	sc.Name = "recovery"
	for r := range sc.Regions {
		sc.Regions[r].Target = 0
	}
	const back = 1800
	sc.Events = append(sc.Events, Event{back, func(c *Controls) { c.Dead[A], c.Health[A], c.Dial[A] = false, 1, 0.1 }})
	for i := 1; i <= 9; i++ {
		sc.Events = append(sc.Events, Event{back + 60*i, func(c *Controls) { c.Dial[A] = float64(1+i) / 10 }})
	}
	sc.Length = 5400
	return sc
}

// Frozen is Surge at a time when the signal of B has stopped; Stuck, when it goes
// on with its last value.
func Frozen() Scenario {
	sc := Surge("frozen sensor")
	sc.Events = append(sc.Events, Event{Shock - 30, func(c *Controls) { c.Frozen[B] = true }})
	return sc
}

// Stuck is Surge with a sensor of A that from the surge's height on goes on
// telling the same.
func Stuck() Scenario {
	sc := Surge("stuck sensor")
	sc.Events = append(sc.Events, Event{Shock + 60, func(c *Controls) { c.Stuck[A] = true }})
	return sc
}

// Late is Surge with signals of twice the delay that their age admits to.
func Late() Scenario {
	sc := Surge("doubled delay")
	sc.Hidden = sc.Delay + sc.Period
	return sc
}

// Lifetime is Surge with another TTL.
func Lifetime(ttl int) Scenario {
	sc := Surge("")
	sc.Name = map[int]string{30: "ttl 30", 60: "ttl 60", 300: "ttl 300"}[ttl]
	sc.TTL = ttl
	return sc
}

// OneBig is Surge where (with more room at B and C) one resolver has 30 % of all demand.
func OneBig() Scenario {
	sc := Surge("one big resolver")
	sc.Regions[B].Capacity, sc.Regions[C].Capacity = 60, 60
	sc.Big = 0.5 // of A's 60 of 100
	sc.Seed = 2  // its hash lies at 0.89, so it must go
	sc.Length = 7200
	return sc
}

// TwoInstances is Surge with two name servers, the second of which starts without a
// state long after the surge.
func TwoInstances() Scenario {
	sc := Surge("two instances")
	sc.Instances = []Instance{{0, 0.5}, {1507, 0.5}}
	sc.Length = 7200
	return sc
}

// AllDown has every region fail for five minutes.
func AllDown() Scenario {
	sc := Surge("all down")
	for r := range sc.Regions {
		sc.Events = append(sc.Events, Event{1800, func(c *Controls) { c.Dead[r], c.Health[r] = true, 0 }},
			Event{2100, func(c *Controls) { c.Dead[r], c.Health[r] = false, 1 }})
	}
	sc.Length = 5400
	return sc
}

// Figure is a scenario and the law that is shown beside ours.
type Figure struct {
	File, Title string
	Scenario    Scenario
	Rival       string
	Law         func() Law
}

// Figures are the plots of docs/capacity.
func Figures() []Figure {
	watermark := Watermark(0.8, 1)
	return []Figure{
		{"cascade", "A dies; capacities B 36k, C 24k (deficit 30k)", Cascade("cascade", 36, 24), "nearest only", Nearest},
		{"cascade-room", "A dies; capacities B 45k, C 45k", Cascade("cascade with room", 45, 45), "watermark 80-100 %", watermark},
		{"surge", "A's demand rises from 40k to 60k", Surge("surge"), "watermark 80-100 %", watermark},
		{"surge-bang-bang", "A's demand rises from 40k to 60k", Surge("surge"), "bang-bang", BangBang(0.9)},
		{"frozen", "the same, B's signal stopped", Frozen(), "watermark 80-100 %", watermark},
		{"stuck", "the same, A's signal goes on with one value", Stuck(), "watermark 80-100 %", watermark},
		{"late", "the same, signals later than they say", Late(), "watermark 80-100 %", watermark},
		{"ttl-30", "the same, TTL 30 s", Lifetime(30), "watermark 80-100 %", watermark},
		{"ttl-300", "the same, TTL 300 s", Lifetime(300), "watermark 80-100 %", watermark},
		{"one-big", "the same, one resolver has 30 % of demand", OneBig(), "watermark 80-100 %", watermark},
		{"two-instances", "the same, a second server starts without a state", TwoInstances(), "watermark 80-100 %", watermark},
		{"recovery", "A dies and comes back with a ramp", Recovery(), "nearest only", Nearest},
		{"all-down", "the surge, then everything is down for 5 minutes", AllDown(), "watermark 80-100 %", watermark},
	}
}
