// What others wrote, names above all, as it may be shown: in UTF-8, legal in XML, and without
// anything that a terminal would obey. The one place that does it, for error texts, reports and
// pictures; JSON has its own escapes.
//
// Control characters (ASCII's, DEL and those from U+0080), marks that change the direction of
// writing, U+FFFE and U+FFFF, and bytes that are not UTF-8 are written out: "\n", "\t", "\x1b",
// "\u009b", "\xff". Doing it again changes nothing.
#pragma once

#include <string>
#include <string_view>

namespace rehearse {

std::string VisibleText(std::string_view text);
// The same for texts of several lines; line ends stay.
std::string VisibleLines(std::string_view text);

}  // namespace rehearse
