// Text in gzip's format (RFC 1952), as in files that end in .gz. Pure; the same text gives the same
// bytes.
#pragma once

#include <string>
#include <string_view>

namespace rehearse {

// Whether it begins as gzip's format does, which no JSON text can.
bool IsGzip(std::string_view bytes);

std::string Gzip(std::string_view text);

// Throws Error when the bytes are damaged or cut off, or hold more than `most` bytes.
std::string Gunzip(std::string_view bytes, size_t most);

}  // namespace rehearse
