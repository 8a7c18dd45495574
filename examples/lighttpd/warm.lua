-- Which requests ask fcgi-stat-accel? Not those for a name that another request has asked about in this second.
-- magnet.conf runs this file twice for each request: before lighttpd looks for the file, and when the answer begins.
local r = lighty.r
local now = lighty.c.time()
local seen = _G.seen            -- of this process; other globals end with the request
if not seen or seen.second ~= now then
	seen = { second = now, warm = {}, room = 1000000 }      -- this many bytes of names in a second; beyond them each request asks
	_G.seen = seen
end

if r.req_item["http_status"] == 0 then          -- before the look-up
	local name = (r.req_attr["uri.authority"] or "") .. r.req_attr["uri.path"]
	local range = r.req_header["Range"]             -- the name may be warm, its far end not
	local ask = range or not seen.warm[name]
	r.req_header["X-Ask"] = ask and not seen.down and "1" or "0"
	r.req_env["ASKED_NAME"] = not range and name or ""      -- mod_indexfile changes uri.path later
elseif r.req_header["X-Ask"] == "1" then
	local name = r.req_env["ASKED_NAME"]
	if r.req_item["http_status"] == 503 then
		seen.down = true        -- no accelerator: for the rest of this second lighttpd serves without it
	elseif name and name ~= "" and not r.req_env["WARM_NO_STORE"] and not seen.warm[name] and seen.room > 0 then
		seen.warm[name], seen.room = true, seen.room - #name
	end
end
return 0
