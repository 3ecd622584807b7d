#include "tests/fuzz/mutator.h"

#include <algorithm>
#include <array>
#include <cctype>

#include <nlohmann/json.hpp>

namespace rehearse {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array kNumbers = {"0",
                                 "-0",
                                 "1",
                                 "-1",
                                 "2",
                                 "3",
                                 "7",
                                 "8",
                                 "16",
                                 "127",
                                 "128",
                                 "255",
                                 "256",
                                 "1000",
                                 "65535",
                                 "65536",
                                 "1e3",
                                 "2147483647",
                                 "2147483648",
                                 "4294967295",
                                 "1e18",
                                 "1e308",
                                 "1e-308",
                                 "1e400",
                                 "4294967296",
                                 "0.5",
                                 "1e-9",
                                 "0.1",
                                 "9007199254740993",
                                 "9223372036854775807",
                                 "9223372036854775808",
                                 "-9223372036854775808",
                                 "18446744073709551615",
                                 "18446744073709551616",
                                 "nan",
                                 "inf"};

bool IsWordPart(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || c == '.';
}
bool IsDigit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

// SplitMix64.
uint64_t Mutator::Next() {
  uint64_t z = state_ += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

uint64_t Mutator::Below(uint64_t end) { return end == 0 ? 0 : Next() % end; }

const std::string& Mutator::Any(const std::vector<std::string>& of) {
  static const std::string nothing;
  return of.empty() ? nothing : of[Below(of.size())];
}

// Short ones more often.
std::string Mutator::AnyBlock(std::string_view of) {
  if (of.empty()) return "";
  const size_t begin = Below(of.size());
  const size_t most = std::min<size_t>(of.size() - begin, size_t{1} << (1 + Below(10)));
  return std::string(of.substr(begin, 1 + Below(most)));
}

void Mutator::ReplaceToken(std::string* text) {
  if (text->empty()) return;
  size_t begin = Below(text->size());
  while (begin > 0 && IsWordPart((*text)[begin - 1])) --begin;
  size_t end = begin;
  while (end < text->size() && IsWordPart((*text)[end])) ++end;
  std::string word = Any(words_);
  const bool is_quoted = begin > 0 && (*text)[begin - 1] == '"';
  if (is_quoted && word.size() >= 2 && word.front() == '"') word = word.substr(1, word.size() - 2);
  text->replace(begin, end - begin, word);
}

void Mutator::ReplaceNumber(std::string* text) {
  const size_t from = Below(text->size());
  const auto found =
      std::find_if(text->begin() + static_cast<ptrdiff_t>(from), text->end(), IsDigit);
  if (found == text->end()) return;
  const auto begin = static_cast<size_t>(found - text->begin());
  size_t end = begin;
  while (end < text->size() && (IsDigit((*text)[end]) || (*text)[end] == '.')) ++end;
  text->replace(begin, end - begin,
                OneIn(3) ? std::to_string(Below(20)) : kNumbers[Below(kNumbers.size())]);
}

void Mutator::MutateBytes(std::string* text) {
  const size_t at = Below(text->size() + 1);
  const size_t length = AnyBlock(*text).size();
  switch (Below(11)) {
    case 0:
      if (!text->empty()) (*text)[Below(text->size())] ^= static_cast<char>(1 << Below(8));
      break;
    case 1:
      if (!text->empty()) (*text)[Below(text->size())] = static_cast<char>(Next());
      break;
    case 2: {
      const auto byte = static_cast<char>(Next());  // the order of a call's arguments is not known
      text->insert(at, 1 + Below(4), byte);
      break;
    }
    case 3:
      text->erase(at, length);
      break;
    case 4:
      text->insert(at, AnyBlock(*text));
      break;
    case 5:
      text->insert(at, AnyBlock(Any(texts_)));
      break;
    case 6:
      text->insert(at, Any(words_));
      break;
    case 7:
      ReplaceToken(text);
      break;
    case 8:
      if (!text->empty()) ReplaceNumber(text);
      break;
    case 9:
      if (OneIn(4)) text->resize(at);
      break;
    case 10: {
      const std::string block = text->substr(at, length);
      for (uint64_t times = Below(OneIn(8) ? 300 : 4); times > 0; --times) text->insert(at, block);
      break;
    }
  }
}

namespace {

// Every value, in order.
void Collect(Json* value, std::vector<Json*>* all) {
  all->push_back(value);
  if (!value->is_structured()) return;
  for (Json& part : *value) Collect(&part, all);
}

}  // namespace

bool Mutator::MutateJson(std::string* text) {
  Json document = Json::parse(*text, nullptr, false, true);
  if (document.is_discarded()) return false;
  std::vector<Json*> all;
  Collect(&document, &all);
  Json& target = *all[Below(all.size())];
  const auto word = [&] {
    Json value = Json::parse(Any(words_), nullptr, false);
    return value.is_discarded() ? Json(Any(words_)) : value;
  };
  const auto number = [&]() -> Json {
    Json value = Json::parse(kNumbers[Below(kNumbers.size())], nullptr, false);
    return value.is_discarded() ? Json(Below(100)) : value;
  };
  const auto element = [&](Json& of) {
    auto at = of.begin();
    std::advance(at, static_cast<ptrdiff_t>(Below(of.size())));
    return at;
  };
  switch (Below(9)) {
    case 0:
      target = word();
      break;
    case 1:
      if (target.is_number_unsigned() && OneIn(2)) {
        const int64_t sign = OneIn(2) ? 1 : -1;
        target = Json(target.get<uint64_t>() + sign * static_cast<int64_t>(1 + Below(3)));
      } else {
        target = number();
      }
      break;
    case 2:
      target = Json(*all[Below(all.size())]);
      break;
    case 3: {
      Json other = Json::parse(Any(texts_), nullptr, false, true);
      if (other.is_discarded()) break;
      std::vector<Json*> parts;
      Collect(&other, &parts);
      target = *parts[Below(parts.size())];
      break;
    }
    case 4:
    case 5:
      if (target.is_structured() && !target.empty()) target.erase(element(target));
      break;
    case 6:
      if (target.is_object()) {
        const Json key = word();
        target[key.is_string() ? key.get<std::string>() : "name"] = OneIn(2) ? word() : number();
      } else if (target.is_array()) {
        target.push_back(target.empty() || OneIn(2) ? word() : Json(*element(target)));
      } else if (target.is_string()) {
        auto changed = target.get<std::string>();
        MutateBytes(&changed);
        target = changed;
      }
      break;
    case 7:
      target = OneIn(2) ? Json::array({target}) : Json{{"value", target}};
      break;
    case 8:
      if (target.is_string()) {
        auto changed = target.get<std::string>();
        OneIn(2) ? ReplaceToken(&changed) : MutateBytes(&changed);
        target = changed;
      } else if (target.is_number()) {
        target = Below(20);
      } else if (target.is_array() && target.size() > 1) {
        std::swap(*element(target), *element(target));
      }
      break;
  }
  *text = document.dump(OneIn(4) ? 1 : -1, ' ', false, Json::error_handler_t::replace);
  return true;
}

std::string Mutator::Mutate(std::string text, FuzzLanguage language) {
  for (uint64_t edits = 1 + Below(OneIn(3) ? 8 : 3); edits > 0; --edits) {
    const bool keeps_json = language == FuzzLanguage::kJson && !OneIn(4);
    if (!keeps_json || !MutateJson(&text)) MutateBytes(&text);
    if (text.size() > kLongestInput) text.resize(kLongestInput);
  }
  return text;
}

}  // namespace rehearse
