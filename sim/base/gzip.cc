#include "sim/base/gzip.h"

#include <array>
#include <limits>

#include <zlib.h>

#include "sim/base/error.h"
#include "sim/base/units.h"

namespace rehearse {
namespace {

constexpr int kGzipFormat = 16;  // added to the window's bits: gzip's header, not zlib's

// zlib counts in 32 bits, and never writes to what it reads.
void SetInput(z_stream* stream, std::string_view text) {
  CHECK_LE(text.size(), size_t{std::numeric_limits<uInt>::max()});
  stream->next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream->avail_in = static_cast<uInt>(text.size());
}

// A buffer that zlib writes to.
class OutputPiece {
 public:
  explicit OutputPiece(z_stream* stream) {
    stream->next_out = bytes_.data();
    stream->avail_out = static_cast<uInt>(bytes_.size());
  }
  void AppendTo(std::string* text, const z_stream& stream) const {
    text->append(reinterpret_cast<const char*>(bytes_.data()), bytes_.size() - stream.avail_out);
  }

 private:
  std::array<Bytef, size_t{1} << 16> bytes_{};
};

}  // namespace

bool IsGzip(std::string_view bytes) { return bytes.starts_with("\x1f\x8b"); }

std::string Gzip(std::string_view text) {
  z_stream stream{};
  constexpr int kMemory = 8;  // zlib's default
  CHECK_EQ(deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, MAX_WBITS + kGzipFormat, kMemory,
                        Z_DEFAULT_STRATEGY),
           Z_OK);
  SetInput(&stream, text);
  std::string bytes;
  int status = Z_OK;
  while (status == Z_OK) {
    OutputPiece piece(&stream);
    status = deflate(&stream, Z_FINISH);
    piece.AppendTo(&bytes, stream);
  }
  deflateEnd(&stream);
  CHECK_EQ(status, Z_STREAM_END);
  return bytes;
}

std::string Gunzip(std::string_view bytes, size_t most) {
  z_stream stream{};
  CHECK_EQ(inflateInit2(&stream, MAX_WBITS + kGzipFormat), Z_OK);
  SetInput(&stream, bytes);
  std::string text;
  int status = Z_OK;
  while (status == Z_OK && text.size() <= most) {
    OutputPiece piece(&stream);
    status = inflate(&stream, Z_NO_FLUSH);
    piece.AppendTo(&text, stream);
  }
  const bool is_whole = status == Z_STREAM_END && stream.avail_in == 0;
  inflateEnd(&stream);
  if (text.size() > most)
    throw Error("the gzipped text has more than " + Print(Bytes(static_cast<double>(most))));
  if (status == Z_BUF_ERROR) throw Error("the gzipped text ends too early; it may be truncated");
  if (!is_whole) throw Error("is not gzipped text, or is damaged");
  return text;
}

}  // namespace rehearse
