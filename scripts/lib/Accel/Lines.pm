package Accel::Lines;
# The lines of README.md and examples/ that a configuration needs; t/scripts/check-lines.t compares them.
use v5.36;
use Accel::Build ();

# The line that asks before files are served; it stands next to the root line.
sub nginx_ask ($uri) { return "auth_request $uri;\n" }

# The location that is asked, and the one that answers while the accelerator is down.  $params: lines that name the file.
sub nginx_location ($uri, $address, $params = nginx_names()) {
	return <<~"EOT";
		location = $uri {
			internal;
			fastcgi_pass $address;
			fastcgi_pass_request_body off;
			fastcgi_param REQUEST_METHOD \$request_method;
			fastcgi_param REMOTE_ADDR \$remote_addr;
		@{[$params =~ s/^/\t/gmr]}	error_page 502 503 504 = $uri/down;
		}
		location = $uri/down {
			internal;
			return 204;
		}
		EOT
}

# The name of the file: root and URI.
sub nginx_names () { return "fastcgi_param DOCUMENT_ROOT \$document_root;\nfastcgi_param REQUEST_URI \$request_uri;\n" }

# Another name, made by nginx_set() in the location of the file.
sub nginx_warm_path ($variable = 'warm_path') { return "fastcgi_param WARM_PATH \$$variable;\nuninitialized_variable_warn off;\n" }

sub nginx_set ($variable = 'warm_path') { return "set \$$variable \$request_filename;\n" }

# lighttpd starts the accelerator itself.
sub lighttpd_module () { return "server.modules += ( \"mod_fastcgi\" )\n" }

sub lighttpd_server ($root) {
	return <<~"EOT";
		fastcgi.server += ( "/" => (( "mode" => "authorizer", "check-local" => "disable", "socket" => "/run/lighttpd/stat-accel.sock",
			"bin-path" => "$Accel::Build::BINDIR/fcgi-stat-accel --mode=auth --root=$root", "max-procs" => 1 )) )
		EOT
}

# Apache asks an authorizer that always grants.
sub apache_define ($address) { return "AuthnzFcgiDefineProvider authn stat-accel fcgi://$address/\n" }

sub apache_ask ($name = 'stat-accel') {
	return "AuthnzFcgiCheckAuthnProvider $name Authoritative On RequireBasicAuth Off UserExpr \"%{reqenv:ACCEL_USER}\" DefaultUser warm\nRequire valid-user\n";
}

1;
