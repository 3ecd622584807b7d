#include "sim/base/text_stream.h"

#include <cerrno>
#include <cstring>

#include <fmt/format.h>
#include <sys/stat.h>
#include <zlib.h>

#include "sim/base/error.h"

namespace rehearse {
namespace {

constexpr size_t kPiece = size_t{1} << 18;

}  // namespace

TextStream::TextStream(const std::string& path)
    : path_(path), file_(nullptr), piece_(kPiece), at_(piece_.data()), end_(piece_.data()) {
  struct stat status = {};
  if (stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode))
    throw Error(fmt::format("cannot read {}: it is a folder", path));
  file_ = gzopen(path.c_str(), "rb");
  if (file_ == nullptr)
    throw Error(fmt::format("cannot read {}: {}", path,
                            std::strerror(errno == 0 ? ENOMEM : errno)));  // NOLINT
  gzbuffer(static_cast<gzFile>(file_), static_cast<unsigned>(kPiece));
}

TextStream::~TextStream() { gzclose_r(static_cast<gzFile>(file_)); }

bool TextStream::Refill() {
  before_ = offset();
  auto* const file = static_cast<gzFile>(file_);
  const int count = gzread(file, piece_.data(), static_cast<unsigned>(piece_.size()));
  int status = Z_OK;
  const char* const message = gzerror(file, &status);
  if (count < 0 || (count == 0 && status == Z_BUF_ERROR)) {
    throw Error(fmt::format("{}: after {} bytes of text: {}", path_, before_,
                            status == Z_BUF_ERROR
                                ? "the gzipped text ends too early; it may be truncated"
                            : status == Z_ERRNO ? std::strerror(errno)  // NOLINT
                                                : message));
  }
  at_ = piece_.data();
  end_ = at_ + count;
  return count > 0;
}

}  // namespace rehearse
