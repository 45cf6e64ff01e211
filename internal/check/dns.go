package check

// QTypes are the types a check of kind dns can ask for, with their numbers
// (RFC 1035 section 3.2.2 and its successors).
var QTypes = map[string]uint16{
	"A": 1, "NS": 2, "CNAME": 5, "SOA": 6, "PTR": 12, "MX": 15, "TXT": 16, "AAAA": 28,
	"SRV": 33, "NAPTR": 35, "DS": 43, "DNSKEY": 48, "SVCB": 64, "HTTPS": 65, "CAA": 257,
}

// RCodes are the response codes a condition can name, with their numbers
// (RFC 1035 section 4.1.1).
var RCodes = map[string]int{
	"NOERROR": 0, "FORMERR": 1, "SERVFAIL": 2, "NXDOMAIN": 3, "NOTIMP": 4, "REFUSED": 5,
}
