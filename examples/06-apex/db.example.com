$ORIGIN example.com.
$TTL 3600
@       IN SOA  ns1.example.com. hostmaster.example.com. (
                2026120101 ; serial
                7200       ; refresh
                900        ; retry
                1209600    ; expire
                60 )       ; minimum
        IN NS   ns1.example.com.
        IN NS   ns2.example.com.
        IN MX   10 mail.example.com.
        IN TXT  "v=spf1 mx -all"
ns1     IN A    192.0.2.1
ns2     IN A    192.0.2.2
mail    IN A    192.0.2.25
