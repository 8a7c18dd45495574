/* t/bench/hostile/http2.c -- writes frames of HTTP/2, and counts those that a server sends. */
#include <string.h>
#include "t/bench/hostile/hostile.h"

#define HEAD 9

const char *const h2_codes[H2_CODES + 1] = { "NO_ERROR", "PROTOCOL_ERROR", "INTERNAL_ERROR",
	"FLOW_CONTROL_ERROR", "SETTINGS_TIMEOUT", "STREAM_CLOSED", "FRAME_SIZE_ERROR",
	"REFUSED_STREAM", "CANCEL", "COMPRESSION_ERROR", "CONNECT_ERROR", "ENHANCE_YOUR_CALM",
	"INADEQUATE_SECURITY", "HTTP_1_1_REQUIRED", "other" };

/* ---------------------------------------------------------------- writing */

/* What does not fit is left out: callers look at h2_room(). */
void
h2_bytes(struct h2_out *o, const void *s, size_t n)
{
	n = n < h2_room(o) ? n : h2_room(o);
	memcpy(o->at, s, n);
	o->at += n;
}

static void
byte(struct h2_out *o, unsigned b)
{
	char c = (char)b;

	h2_bytes(o, &c, 1);
}

void
h2_u32(struct h2_out *o, uint32_t n)
{
	byte(o, n >> 24);
	byte(o, n >> 16 & 255);
	byte(o, n >> 8 & 255);
	byte(o, n & 255);
}

void
h2_frame(struct h2_out *o, unsigned type, unsigned flags, uint32_t stream, size_t len)
{
	byte(o, (unsigned)(len >> 16));
	byte(o, (unsigned)(len >> 8 & 255));
	byte(o, (unsigned)(len & 255));
	byte(o, type);
	byte(o, flags);
	h2_u32(o, stream);
	o->frames++;
}

void
h2_setting(struct h2_out *o, enum h2_setting setting, uint32_t value)
{
	h2_frame(o, H2_SETTINGS, 0, 0, 6);
	byte(o, 0);
	byte(o, setting);
	h2_u32(o, value);
}

void
h2_window(struct h2_out *o, uint32_t stream, uint32_t more)
{
	h2_frame(o, H2_WINDOW_UPDATE, 0, stream, 4);
	h2_u32(o, more);
}

void
h2_reset(struct h2_out *o, uint32_t stream, uint32_t code)
{
	h2_frame(o, H2_RST_STREAM, 0, stream, 4);
	h2_u32(o, code);
}

/* An integer of RFC 7541, 5.1. */
static void
integer(struct h2_out *o, unsigned first, unsigned bits, size_t n)
{
	size_t most = (1u << bits) - 1;

	if (n < most) {
		byte(o, first | (unsigned)n);
		return;
	}
	byte(o, first | (unsigned)most);
	for (n -= most; n >= 128; n >>= 7)
		byte(o, 128 | (unsigned)(n & 127));
	byte(o, (unsigned)n);
}

static void
string(struct h2_out *o, const char *s)
{
	size_t len = strlen(s);

	integer(o, 0, 7, len);
	h2_bytes(o, s, len);
}

void
h2_field(struct h2_out *o, unsigned index, const char *name, const char *value)
{
	integer(o, 0, 4, index);
	if (index == 0)
		string(o, name);
	string(o, value);
}

void
h2_fields(struct h2_out *o, bool post, const char *path)
{
	byte(o, post ? 0x83 : 0x82); /* :method of the static table */
	byte(o, 0x86);               /* :scheme http */
	h2_field(o, 4, NULL, path);
	h2_field(o, 1, NULL, opt.host);
}

void
h2_request(struct h2_out *o, uint32_t stream, bool post, const char *path, unsigned flags)
{
	char buf[512];
	struct h2_out fields = { .at = buf, .end = buf + sizeof(buf) };

	h2_fields(&fields, post, path);
	h2_frame(o, H2_HEADERS, flags, stream, (size_t)(fields.at - buf));
	h2_bytes(o, buf, (size_t)(fields.at - buf));
	o->requests++;
}

/* ---------------------------------------------------------------- reading */

static uint32_t
u32(const unsigned char *s)
{
	return ((uint32_t)s[0] << 24 | (uint32_t)s[1] << 16 | (uint32_t)s[2] << 8 | s[3]);
}

/* The first digit of the status at the start of a head; 0 if it stands elsewhere.  Our settings
 * forbid the dynamic table, so it is an entry of the static table or a literal. */
static unsigned
status(const unsigned char *s, size_t len)
{
	static const unsigned char fixed[] = { 2, 2, 2, 3, 4, 4, 5 }; /* entries 8 to 14 */

	if (len > 0 && *s == 0x20) /* the table has no bytes from here on */
		s++, len--;
	if (len > 0 && *s >= 0x88 && *s <= 0x8e)
		return (fixed[*s - 0x88]);
	if (len < 3 || (*s & 15) != 8)
		return (0);
	if (s[1] == 3)
		return (s[2] >= '0' && s[2] <= '5' ? s[2] - '0' : 0);
	if ((s[1] & 0x80) == 0)
		return (0);
	/* Huffman: 0 to 2 have five bits, the other digits six. */
	return (s[2] >> 3 < 3                            ? s[2] >> 3
		: s[2] >> 2 >= 0x19 && s[2] >> 2 <= 0x1b ? (s[2] >> 2) - 0x16
							 : 0);
}

static void
count_code(uint64_t *codes, uint32_t code)
{
	codes[code < H2_CODES ? code : H2_CODES]++;
}

static void
frame_ended(struct peer *p, const struct h2_in *in)
{
	const unsigned char *payload = in->seen + HEAD;
	size_t len = in->have - HEAD;
	struct h2_said *said = &p->run->h2;
	unsigned first;

	said->frames++;
	switch (in->seen[3]) {
	case H2_SETTINGS:
		if ((in->seen[4] & H2_ACK) == 0)
			p->h2.settings = true;
		break;
	case H2_GOAWAY:
		if (len == 8)
			count_code(said->goaway, u32(payload + 4));
		break;
	case H2_RST_STREAM:
		if (len >= 4)
			count_code(said->reset, u32(payload));
		p->answered++;
		break;
	case H2_HEADERS:
		first = status(payload, len);
		p->run->answers[first]++;
		p->answered += first != 1;
		break;
	default: break;
	}
}

void
h2_read(struct peer *p, const unsigned char *s, size_t n)
{
	struct h2_in *in = &p->h2;
	size_t skip;

	while (n > 0) {
		if (in->have < HEAD || (in->left > 0 && in->have < sizeof(in->seen))) {
			in->left -= in->have >= HEAD;
			in->seen[in->have++] = *s++;
			n--;
			if (in->have == HEAD)
				in->left = u32(in->seen) >> 8;
		} else {
			skip = n < in->left ? n : in->left;
			in->left -= (uint32_t)skip;
			s += skip;
			n -= skip;
		}
		if (in->have >= HEAD && in->left == 0) {
			frame_ended(p, in);
			in->have = 0;
		}
	}
}

/* ---------------------------------------------------------------- the first frames */

/* No dynamic table, so that status() can read the replies. */
static void
preface(struct h2_out *o)
{
	static const char words[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

	h2_bytes(o, words, sizeof(words) - 1);
	h2_setting(o, H2_TABLE_SIZE, 0);
}

size_t
h2_next(struct peer *p, char *out, unsigned *requests)
{
	struct h2_out o = { .at = out, .end = out + PIECE_MAX };

	if (p->step == 0) {
		p->stream = 1;
		preface(&o);
	}
	if (p->h2.settings && !p->h2.acked && !p->open_head) {
		p->h2.acked = true;
		h2_frame(&o, H2_SETTINGS, H2_ACK, 0, 0);
	}
	p->run->attack->frames(p, &o);
	p->run->frames += o.frames;
	*requests = o.requests;
	return ((size_t)(o.at - out));
}
