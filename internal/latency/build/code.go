package build

import (
	"encoding/binary"
	"errors"
)

// The code of a cell: key (8 bytes), region (1), day (2), then as varints failures,
// twice the number of points and 1 if binned, and for each point its value less the one before and
// its samples.

var errCode = errors.New("a cell is damaged")

// maxPoints bounds the points of a cell: as many as there are bins, or exact samples.
var maxPoints = uint64(max(numBins, maxExact))

func (c *cell) encode(b []byte) []byte {
	b = binary.BigEndian.AppendUint64(b, uint64(c.key))
	b = append(b, c.region)
	b = binary.BigEndian.AppendUint16(b, c.day)
	b = binary.AppendUvarint(b, c.failed)
	kind := uint64(len(c.points)) << 1
	if c.binned {
		kind |= 1
	}
	b = binary.AppendUvarint(b, kind)
	before := uint32(0)
	for _, p := range c.points {
		b = binary.AppendUvarint(b, uint64(p.value-before))
		b = binary.AppendUvarint(b, p.n)
		before = p.value
	}
	return b
}

// decode reads a cell from the start of b, reusing its points, and gives what is
// left of b. It accepts nothing that encode doesn't make.
func (c *cell) decode(b []byte) (rest []byte, err error) {
	if len(b) < 11 {
		return nil, errCode
	}
	*c = cell{key: key(binary.BigEndian.Uint64(b)), region: b[8], day: binary.BigEndian.Uint16(b[9:]), points: c.points[:0]}
	b = b[11:]
	uvarint := func(most uint64) (v uint64) {
		v, n := binary.Uvarint(b)
		if n <= 0 || v > most {
			b, err = nil, errCode
			return 0
		}
		b = b[n:]
		return v
	}
	c.failed = uvarint(maxCount)
	kind := uvarint(2*maxPoints + 1)
	c.binned = kind&1 == 1
	limit := uint64(maxRTT * unitsPerMs)
	if c.binned {
		limit = uint64(numBins - 1)
	}
	value, sum := uint64(0), uint64(0)
	for i := range kind >> 1 {
		step := uvarint(limit)
		value += step
		n := uvarint(maxCount)
		sum += n
		if err != nil || value > limit || n == 0 || i > 0 && step == 0 || !c.binned && (value == 0 || sum > maxExact) {
			return nil, errCode
		}
		c.points = append(c.points, point{uint32(value), n})
	}
	return b, err
}
