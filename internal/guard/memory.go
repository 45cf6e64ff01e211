package guard

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"

	"github.com/seed-945f90c5/gslb/internal/config"
	"github.com/seed-945f90c5/gslb/internal/plan"
	"github.com/seed-945f90c5/gslb/internal/probe"
	"github.com/seed-945f90c5/gslb/internal/steer"

	"github.com/cespare/xxhash/v2"
)

// Memory is what a plan decides, as far as a sample of its blocks tells: with every
// endpoint up and no lever moved, as those are of the moment.
type Memory struct {
	Version int          `json:"version"`
	Samples [][]sample   `json:"samples"` // one for each topology
	Hosts   []hostMemory `json:"hosts"`
}

// sample is a block's prefix and its candidate list.
type sample struct {
	Prefix netip.Prefix `json:"p"`
	List   int          `json:"l"`
}

// hostMemory is what the clients of each list of a host get.
type hostMemory struct {
	Name    string                        `json:"name"`
	Samples int                           `json:"samples"` // index into Memory.Samples
	Flows   [2]map[int]map[string]float64 `json:"flows"`   // by family, list and region
}

const (
	memoryVersion = 1
	// maxSamples is how many blocks of a topology are kept: a part of a tenth of all
	// is then known to a hundredth.
	maxSamples = 4096
	maxMemory  = 64 << 20
)

// Remember makes the memory of a plan.
func Remember(p *plan.Plan) *Memory {
	m := &Memory{Version: memoryVersion}
	index := make(map[*plan.Need]int)
	for _, h := range p.Hosts {
		i, ok := index[h.Need]
		if !ok {
			i = len(m.Samples)
			index[h.Need] = i
			m.Samples = append(m.Samples, samples(h))
		}
		m.Hosts = append(m.Hosts, remember(h, i, m.Samples[i]))
	}
	return m
}

// samples takes every n-th block of each family.
func samples(h *plan.Host) (list []sample) {
	counts := [2]int{}
	for p := range h.Need.Topology.Blocks(false) {
		counts[familyIndex(p)]++
	}
	seen := [2]int{}
	for p, l := range h.Need.Topology.Blocks(false) {
		f := familyIndex(p)
		if every := (counts[f] + maxSamples/2 - 1) / (maxSamples / 2); seen[f]%every == 0 {
			list = append(list, sample{p, l})
		}
		seen[f]++
	}
	return list
}

func familyIndex(p netip.Prefix) int {
	if p.Addr().Is4() {
		return 0
	}
	return 1
}

func remember(h *plan.Host, index int, list []sample) hostMemory {
	m := hostMemory{Name: h.Config.Names[0], Samples: index}
	fl := newFlows(h, calm(h))
	for f := steer.V4; f <= steer.V6; f++ {
		if !h.Steer.Offers(f) {
			continue
		}
		m.Flows[f] = make(map[int]map[string]float64)
		for _, s := range list {
			m.Flows[f][s.List] = fl.of(s.List, f)
		}
	}
	return m
}

// calm is a host's state with every endpoint up but for what is written of it.
func calm(h *plan.Host) *steer.Snapshot {
	return h.Steer.NewSnapshot(func(r steer.Region, i int) steer.EndpointState { return plan.Written(h.Endpoint(r, i)) }, nil)
}

// Refusals are the guards of a block that its plan doesn't pass, coming after the one
// remembered.
func (m *Memory) Refusals(g *config.Guard, p *plan.Plan) []Refusal {
	c := newComparison()
	after := &Side{Plan: p}
	for _, h := range p.Hosts {
		s := calm(h)
		after.Snapshots = append(after.Snapshots, s)
		for i := range m.Hosts {
			if old := &m.Hosts[i]; old.Name == h.Config.Names[0] && old.Samples < len(m.Samples) {
				c.remembered(old, m.Samples[old.Samples], h, s)
			}
		}
		c.stranded(nil, nil, h, s)
	}
	return Refusals(g, c.report(), after)
}

// remembered compares a host with what is remembered of it.
func (c *comparison) remembered(old *hostMemory, list []sample, h *plan.Host, s *steer.Snapshot) {
	fl := newFlows(h, s)
	for f := steer.V4; f <= steer.V6; f++ {
		if old.Flows[f] == nil || !h.Steer.Offers(f) {
			continue
		}
		for _, one := range list {
			part := c.transport(old.Flows[f][one.List], fl.of(locate(h, one.Prefix), f), [2]float64{1, 0})
			i := familyIndex(one.Prefix)
			c.family[i][0]++
			c.family[i][1] += part
			c.total[0]++
			c.moved[0] += part
		}
	}
}

func memoryPath(dir, name string) string {
	return filepath.Join(dir, fmt.Sprintf("accepted-%016x.json", xxhash.Sum64String(name)))
}

// Save writes the memory into a state directory, under a name that tells blocks
// apart.
func (m *Memory) Save(dir, name string) error {
	data, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return probe.WriteAtomic(memoryPath(dir, name), data)
}

// LoadMemory reads what Save wrote; nil, if it never did or another version did.
func LoadMemory(dir, name string) (*Memory, error) {
	path := memoryPath(dir, name)
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil && info.Size() > maxMemory {
		err = fmt.Errorf("%s: %d bytes are too many", path, info.Size())
	}
	if err != nil {
		return nil, err
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	m := &Memory{}
	if err := json.Unmarshal(data, m); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if m.Version != memoryVersion {
		return nil, nil
	}
	return m, nil
}
