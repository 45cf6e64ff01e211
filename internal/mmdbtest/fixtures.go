package mmdbtest

//go:generate go run ./gen -dir ../../testdata

// Fixtures are the databases of testdata by file name.
func Fixtures() map[string]Database {
	return map[string]Database{
		"city.mmdb":     cityFixture(),
		"asn.mmdb":      asnFixture(),
		"corners.mmdb":  cornersFixture(),
		"ipv4only.mmdb": ipv4OnlyFixture(),
	}
}

var (
	frankfurt   = Place{"EU", "DE", []string{"HE"}, "Frankfurt am Main", "60313", &Point{50.1109, 8.6821}, 20}
	london      = Place{"EU", "GB", []string{"ENG", "LND"}, "London", "", &Point{51.5074, -0.1278}, 20}
	istanbul    = Place{"AS", "TR", []string{"34"}, "Istanbul", "", &Point{41.0082, 28.9784}, 50}
	ashburn     = Place{"NA", "US", []string{"VA"}, "Ashburn", "20147", &Point{39.0438, -77.4874}, 20}
	losAngeles  = Place{"NA", "US", []string{"CA"}, "Los Angeles", "90001", &Point{34.0522, -118.2437}, 20}
	california  = Place{"NA", "US", []string{"CA"}, "", "", &Point{36.7783, -119.4179}, 500}
	usDefault   = Place{"NA", "US", nil, "", "", &Point{37.751, -97.822}, 1000} // the country's default point
	saoPaulo    = Place{"SA", "BR", []string{"SP"}, "São Paulo", "", &Point{-23.5505, -46.6333}, 20}
	tokyo       = Place{"AS", "JP", []string{"13"}, "Tokyo", "", &Point{35.6762, 139.6503}, 20}
	singapore   = Place{"AS", "SG", nil, "Singapore", "", &Point{1.3521, 103.8198}, 20}
	sydney      = Place{"OC", "AU", []string{"NSW"}, "Sydney", "", &Point{-33.8688, 151.2093}, 20}
	suva        = Place{"OC", "FJ", []string{"C"}, "Suva", "", &Point{-18.1416, 178.4419}, 20}
	joburg      = Place{"AF", "ZA", []string{"GP"}, "Johannesburg", "", &Point{-26.2041, 28.0473}, 20}
	svalbard    = Place{"EU", "SJ", nil, "Longyearbyen", "", &Point{78.2232, 15.6267}, 50}
	southPole   = Place{"AN", "AQ", nil, "South Pole Station", "", &Point{-90, 0}, 10}
	nullIsland  = Place{"", "", nil, "", "", &Point{0, 0}, 1000}
	europe      = Place{Continent: "EU"}
	noLocation  = Place{Continent: "EU", Country: "FR", Subdivisions: []string{"IDF"}, City: "Paris"}
	badLocation = Place{"EU", "PL", []string{"14"}, "Warsaw", "", &Point{152.2297, 21.0122}, 20}
)

func cityFixture() Database {
	at := func(prefix string, p Place) Network { return Network{prefix, p.Record()} }
	return Database{
		Type:        "GeoLite2-City",
		Description: "hand-made cities on loopback and documentation addresses",
		RecordSize:  28,
		Networks: []Network{
			at("127.1.0.0/16", frankfurt), at("127.2.0.0/16", ashburn), at("127.3.0.0/16", tokyo),
			at("127.4.0.0/16", istanbul), at("127.5.0.0/16", usDefault), at("127.6.0.0/16", losAngeles),
			at("127.7.0.0/16", singapore), at("127.8.0.0/16", sydney), at("127.9.0.0/16", saoPaulo),
			at("127.10.0.0/16", joburg), at("127.11.0.0/16", london), at("127.12.0.0/16", suva),

			at("192.0.2.0/25", nullIsland), at("192.0.2.128/26", svalbard), at("192.0.2.192/26", southPole),
			at("198.51.100.0/24", frankfurt), at("198.51.100.64/26", ashburn), at("198.51.100.128/25", california),
			at("198.51.100.200/32", losAngeles),
			at("203.0.113.0/26", europe), at("203.0.113.64/26", noLocation), at("203.0.113.128/26", badLocation),

			at("2001:db8::/34", frankfurt), at("2001:db8:1::/48", ashburn), at("2001:db8:1:80::/57", losAngeles),
			at("2001:db8:4000::/34", tokyo), at("2001:db8:8000::/35", singapore), at("2001:db8:a000::/36", usDefault),
			at("2001:db8:ffff:ffff:ffff:ffff:ffff:ffff/128", southPole),
		},
	}
}

func asnFixture() Database {
	return Database{
		Type:        "GeoLite2-ASN",
		Description: "hand-made AS numbers on loopback and documentation addresses",
		Networks: []Network{
			{"127.1.128.0/17", ASN(3320, "Deutsche Telekom AG")},
			{"127.2.0.0/17", ASN(14618, "AMAZON-AES")},
			{"127.3.0.0/16", ASN(2516, "KDDI CORPORATION")},
			{"127.5.0.0/16", ASN(7018, "ATT-INTERNET4")},
			{"198.51.100.0/24", ASN(64496, "Documentation")},
			{"198.51.100.128/26", ASN(64511, "Documentation")},
			{"203.0.113.0/24", ASN(4294967294, "the largest private number")},
			{"2001:db8::/33", ASN(65536, "Documentation")},
			{"2001:db8:8000::/34", ASN(65551, "Documentation")},
		},
	}
}

// cornersFixture has what an ordinary database has little of: nested networks,
// empty and half-empty records, holes, the ends of the address space.
func cornersFixture() Database {
	return Database{
		Type:        "GeoLite2-Country",
		Description: "corners of the format",
		RecordSize:  32,
		Networks: []Network{
			{"0.0.0.0/32", Country("EU", "DE")},
			{"10.0.0.0/8", Country("NA", "US")},
			{"10.1.0.0/16", Country("NA", "CA")},
			{"10.1.2.0/24", Country("NA", "MX")},
			{"10.1.2.3/32", Country("NA", "US")},
			{"10.1.2.4/30", nil},
			{"10.128.0.0/9", Record{}},
			{"100.64.0.0/10", Country("EU", "")},
			{"100.96.0.0/11", Country("", "fr")},
			{"100.112.0.0/12", Country("--", "-")},
			{"255.255.255.255/32", Country("OC", "AU")},
			{"::1:0:0:0/80", Country("AF", "ZA")},
			{"2001:db8::/32", Country("AS", "JP")},
			{"2001:db8:8000::/33", nil},
			{"2001:db8:8000::1/128", Country("AS", "KR")},
			{"fe00::/7", Country("SA", "BR")},
			{"ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff/128", Country("AN", "AQ")},
		},
	}
}

func ipv4OnlyFixture() Database {
	return Database{
		Type:        "GeoLite2-Country",
		Description: "an IPv4-only database",
		IPVersion:   4,
		Networks: []Network{
			{"127.1.0.0/16", Country("EU", "DE")},
			{"127.2.0.0/16", Country("NA", "US")},
			{"198.51.100.0/24", Country("EU", "DE")},
			{"203.0.113.0/24", Country("AS", "JP")},
		},
	}
}
