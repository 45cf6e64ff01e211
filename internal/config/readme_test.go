package config_test

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	expected = regexp.MustCompile(`"qqq".* expected one of ([a-z0-9_, ]*)`)
	section  = regexp.MustCompile(`(?m)^##+ `)
	kindLine = regexp.MustCompile(`(?m)^    ([a-z|]+)`)
)

// expectedFor are the words that the parser says it expected where a block has "qqq".
func expectedFor(t *testing.T, text string) []string {
	t.Helper()
	_, err := parse(t, inBlock(text))
	if err == nil {
		t.Fatalf("%s: no error", text)
	}
	m := expected.FindStringSubmatch(err.Error())
	if m == nil {
		t.Fatalf("%s: %v", text, err)
	}
	return strings.Split(m[1], ", ")
}

// manual is README.md by section.
func manual(t *testing.T) map[string]string {
	t.Helper()
	sections := make(map[string]string)
	for _, s := range section.Split(read(t, "../../README.md"), -1) {
		title, body, _ := strings.Cut(s, "\n")
		sections[title] = body
	}
	return sections
}

// listed are the words that the items of a list begin with.
func listed(section, mark string) (words []string) {
	for _, m := range regexp.MustCompile("(?m)^"+regexp.QuoteMeta(mark)+"`([a-z_]+)").FindAllStringSubmatch(section, -1) {
		words = append(words, m[1])
	}
	return words
}

// written are the first words of the statements in each kind of block, as the section Syntax
// has them; what is in capitals there stands for words of other sections.
func written(pages map[string]string) map[string]map[string]bool {
	_, text, _ := strings.Cut(pages["Syntax"], "```txt\n")
	text, _, _ = strings.Cut(text, "```")
	kinds, _, _ := strings.Cut(pages["Health"], "    interval")
	stands := map[string][]string{"HOST OPTIONS": listed(pages["Hosts"], "  * "), "LEVERS": listed(pages["Levers"], "* "), "LIST": {"split", "order"}, "refuse": {"refuse"}}
	for _, m := range kindLine.FindAllStringSubmatch(kinds, -1) {
		stands["KIND"] = append(stands["KIND"], strings.Split(m[1], "|")...)
	}
	blocks, path := make(map[string]map[string]bool), []string{}
	for line := range strings.Lines(text) {
		depth := (len(line) - len(strings.TrimLeft(line, " "))) / 4
		first, _, _ := strings.Cut(strings.TrimSpace(line), " ")
		if path = path[:min(depth, len(path))]; strings.Trim(first, "}]") == "" {
			continue
		}
		if path = append(path, first); depth == 0 {
			continue
		}
		in := blocks[path[depth-1]]
		if in == nil {
			in = make(map[string]bool)
			blocks[path[depth-1]] = in
		}
		if strings.ToLower(first) == first {
			in[first] = true
			continue
		}
		for what, words := range stands {
			if strings.Contains(line, what) {
				for _, w := range words {
					in[w] = true
				}
			}
		}
	}
	return blocks
}

// TestReadmeHasTheWords holds that README.md and the parser know the same statements.
func TestReadmeHasTheWords(t *testing.T) {
	pages := manual(t)
	blocks := written(pages)
	for block, text := range map[string]string{
		"gslb": "qqq", "region": "region a {\nqqq\n}", "clients": "clients rest {\nqqq\n}", "host": "host a.example.com {\nqqq\n}",
		"pool": "host a.example.com {\npool a {\nqqq\n}\n}", "ecs": "ecs {\nqqq\n}", "control": "control unix:/s token /t {\nqqq\n}",
	} {
		got, want := slices.Sorted(maps.Keys(blocks[block])), expectedFor(t, text)
		if slices.Sort(want); !slices.Equal(got, want) {
			t.Errorf("README.md has in %s %v\nand the parser      %v", block, got, want)
		}
	}
}

// TestReadmeHasTheValues holds that README.md tells of the words that statements may go on
// with.
func TestReadmeHasTheValues(t *testing.T) {
	pages := manual(t)
	for text, page := range map[string]string{
		"check web {\nqqq\n}": "Health", "check web {\nexpect qqq x\n}": "Health", "guard qqq 1": "", "geoip qqq x": "Where clients are", "clients qqq x {\norder a\n}": "Where clients are",
		"last_resort qqq": "Hosts", "families qqq": "Hosts", "host a.example.com {\npool a {\nendpoint 192.0.2.1 qqq\n}\n}": "", "region a {\nload qqq x\n}": "Capacity",
	} {
		for _, w := range expectedFor(t, text) {
			if !regexp.MustCompile("[`|\\[ ]" + w + "[^a-z_]").MatchString(pages["Syntax"] + pages[page]) {
				t.Errorf("README.md doesn't tell of %s, which the parser expects in\n%s", w, text)
			}
		}
	}
}
