package guard

import (
	"fmt"
	"math"
)

// kindsLike holds every kind of blocks against the model, which numbers them alike.
func kindsLike(got *Report, want *model) string {
	at, all := 0, sum(want.total[:])
	for k, n := range want.total {
		if n == 0 {
			continue
		}
		if at == len(got.Kinds) || got.Kinds[at].Name != kinds[k] {
			return fmt.Sprintf("kinds are %+v; want %s as number %d", got.Kinds, kinds[k], at)
		}
		if kind := got.Kinds[at]; math.Abs(kind.Part-n/all) > 1e-6 || math.Abs(kind.Moved-want.moved[k]/n) > 0.03 {
			return fmt.Sprintf("%+v; want a part of %.4f, of which %.4f move", kind, n/all, want.moved[k]/n)
		}
		at++
	}
	if at != len(got.Kinds) {
		return fmt.Sprintf("kinds are %+v; want %d", got.Kinds, at)
	}
	return ""
}
