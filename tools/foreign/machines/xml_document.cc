#include "tools/foreign/machines/xml_document.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <set>

#include <fmt/format.h>

#include "sim/base/error.h"
#include "tools/foreign/machines/imported_cluster.h"

namespace rehearse {

XmlDocument::XmlDocument(std::string_view text, const std::string& file,
                         const std::string& expected, Doctype doctype)
    : file_(file) {
  for (size_t i = 0; i < text.size(); ++i)
    if (text[i] == '\n') line_ends_.push_back(i);
  constexpr int kMostMarks = 1'000'000;  // of elements and attributes: bounds the memory
  if (std::count_if(text.begin(), text.end(), [](char c) { return c == '<' || c == '='; }) >
      kMostMarks)
    throw Error({file, 0, ""}, fmt::format("the file has more than {} elements and attributes, "
                                           "expected {}",
                                           kMostMarks, expected));
  const pugi::xml_parse_result result = document_.load_buffer(
      text.data(), text.size(), pugi::parse_default | pugi::parse_doctype, pugi::encoding_utf8);
  for (const pugi::xml_node node : document_.children()) {
    if (node.type() != pugi::node_doctype) continue;
    if (doctype == Doctype::kRefused)
      Fail(node, "the file has a DOCTYPE, which may define entities; NCCL's files have none");
    if (std::string_view(node.value()).find('[') != std::string_view::npos)
      Fail(node, "the DOCTYPE defines something, expected at most the name of a DTD");
  }
  if (result.status == pugi::status_no_document_element)
    throw Error({file, 1, ""}, fmt::format("there is no XML element, expected {}", expected));
  if (!result) FailParse(result, text);
}

pugi::xml_node XmlDocument::Root() const {
  pugi::xml_node root;
  for (const pugi::xml_node node : document_.children()) {
    if (node.type() != pugi::node_element) continue;
    if (root) Fail(node, fmt::format("there is a second element <{}> at the top", NameOf(node)));
    root = node;
  }
  return root;
}

void XmlDocument::Fail(pugi::xml_node node, const std::string& message) const {
  throw Error({file_, LineOf(node), ""}, message);
}

std::vector<pugi::xml_node> XmlDocument::Elements(pugi::xml_node parent) const {
  std::vector<pugi::xml_node> elements;
  for (const pugi::xml_node child : parent.children()) {
    if (child.type() == pugi::node_pcdata || child.type() == pugi::node_cdata)
      Fail(parent, fmt::format("found the text {} in <{}>, expected only elements",
                               Quoted(child.value()), NameOf(parent)));
    if (child.type() != pugi::node_element) continue;
    RefuseTwins(child);
    elements.push_back(child);
  }
  return elements;
}

void XmlDocument::RefuseTwins(pugi::xml_node node) const {
  std::set<std::string_view> seen;
  for (const pugi::xml_attribute attribute : node.attributes())
    if (!seen.insert(attribute.name()).second)
      Fail(node,
           fmt::format("<{}> has the attribute {} twice", NameOf(node), Quoted(attribute.name())));
}

std::string XmlDocument::NameOf(pugi::xml_node node) { return Printable(node.name()); }

std::optional<int64_t> XmlDocument::Number(pugi::xml_node node, const char* attribute,
                                           int64_t minimum, int64_t maximum) const {
  const std::string text = Text(node, attribute);
  if (text.empty()) return std::nullopt;
  const bool is_hex = text.starts_with("0x");
  const char* const begin = text.data() + (is_hex ? 2 : 0);
  const char* const end = text.data() + text.size();
  int64_t value = 0;
  const auto [stop, fault] = std::from_chars(begin, end, value, is_hex ? 16 : 10);
  const bool is_too_long = fault == std::errc::result_out_of_range;
  if ((fault != std::errc() && !is_too_long) || stop != end)
    Fail(node, fmt::format("{} of <{}> is {}, expected a whole number", attribute, NameOf(node),
                           Quoted(text)));
  if (is_too_long || value < minimum || value > maximum)
    Fail(node, fmt::format("{} of <{}> is {}, expected {} to {}", attribute, NameOf(node),
                           Quoted(text), minimum, maximum));
  return value;
}

std::optional<uint32_t> XmlDocument::Count(pugi::xml_node node, const char* attribute,
                                           uint32_t maximum) const {
  const auto number = Number(node, attribute, 0, maximum);
  if (!number) return std::nullopt;
  return static_cast<uint32_t>(*number);
}

double XmlDocument::Decimal(pugi::xml_node node, const char* attribute, double minimum,
                            double maximum) const {
  const std::string text = Text(node, attribute);
  if (text.empty()) return 0;
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, fault] = std::from_chars(text.data(), end, value);
  if (fault != std::errc() || stop != end || !(value >= minimum && value <= maximum))
    Fail(node, fmt::format("{} of <{}> is {}, expected a number from {} to {}", attribute,
                           NameOf(node), Quoted(text), minimum, maximum));
  return value;
}

uint64_t XmlDocument::BusId(pugi::xml_node node, const char* attribute) const {
  constexpr size_t kLongest = 16;
  const std::string text = Text(node, attribute);
  std::string digits;
  bool is_right = !text.empty();
  for (const char c : text) {
    if (c == ':' || c == '.') continue;
    is_right = is_right && std::isxdigit(static_cast<unsigned char>(c)) != 0;
    digits += c;
  }
  uint64_t value = 0;
  if (!is_right || digits.empty() || digits.size() > kLongest)
    Fail(node, fmt::format("{} of <{}> is {}, expected a PCI bus id such as \"0000:1b:00.0\"",
                           attribute, NameOf(node), Quoted(text)));
  std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
  return value;
}

int XmlDocument::LineAt(std::ptrdiff_t offset) const {
  const auto before = std::lower_bound(line_ends_.begin(), line_ends_.end(),
                                       static_cast<size_t>(std::max<std::ptrdiff_t>(offset, 0)));
  return static_cast<int>(before - line_ends_.begin()) + 1;
}

void XmlDocument::FailParse(const pugi::xml_parse_result& result, std::string_view text) const {
  const size_t last = text.find_last_not_of(" \t\r\n");
  const auto offset = static_cast<size_t>(std::max<std::ptrdiff_t>(result.offset, 0));
  if (offset >= last)
    throw Error({file_, LineAt(static_cast<std::ptrdiff_t>(last)), ""},
                fmt::format("the file ends in the middle of an element ({}): was it cut off?",
                            result.description()));
  throw Error({file_, LineAt(result.offset), ""},
              fmt::format("this is not well-formed XML: {}", result.description()));
}

}  // namespace rehearse
