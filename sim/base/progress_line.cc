#include "sim/base/progress_line.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "sim/base/interruption.h"
#include "sim/base/say.h"
#include "sim/base/visible_text.h"

namespace rehearse {
namespace {

constexpr Seconds kSilence(1);
constexpr Seconds kBetweenPictures(0.1);
constexpr Seconds kBetweenLines(30);

// "12 s", "3 min 20 s", "2 h 5 min".
std::string InWords(Seconds duration) {
  const auto seconds = std::max<int64_t>(1, std::llround(std::min(duration.value(), 1e9)));
  if (seconds < 60) return fmt::format("{} s", seconds);
  if (seconds < 3600) return fmt::format("{} min {} s", seconds / 60, seconds % 60);
  return fmt::format("{} h {} min", seconds / 3600, seconds % 3600 / 60);
}

// The first characters of a text in UTF-8.
std::string CutTo(std::string text, unsigned most) {
  size_t characters = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool continues = (static_cast<unsigned char>(text[i]) & 0xc0) == 0x80;
    if (!continues && characters++ == most) {
      text.resize(i);
      break;
    }
  }
  return text;
}

}  // namespace

Seconds ProgressView::SecondsOfThisMachine() {
  const std::chrono::duration<double> now = std::chrono::steady_clock::now().time_since_epoch();
  return Seconds(now.count());
}

ProgressLine::ProgressLine(ProgressView view) : view_(std::move(view)) {
  began_ = view_.clock();
  due_ = began_ + (view_.place == ProgressPlace::kLines ? kBetweenLines : kSilence);
}

void ProgressLine::Begin(std::string_view what, std::string_view parts, uint64_t all) {
  if (view_.place == ProgressPlace::kNowhere) return;
  const std::lock_guard lock(mutex_);
  what_ = what;
  parts_ = parts;
  note_.clear();
  all_ = all;
  done_ = had_ = 0;
  began_ = view_.clock();
  ShowIfDue();
}

void ProgressLine::Done(double parts) {
  if (view_.is_stopped && view_.is_stopped()) throw Stopped("there is no result yet");
  if (view_.place == ProgressPlace::kNowhere) return;
  const std::lock_guard lock(mutex_);
  done_ = parts;
  ShowIfDue();
}

void ProgressLine::Had(double parts) {
  if (view_.place == ProgressPlace::kNowhere) return;
  const std::lock_guard lock(mutex_);
  had_ = parts;
}

void ProgressLine::Note(std::string_view note) {
  if (view_.place == ProgressPlace::kNowhere) return;
  const std::lock_guard lock(mutex_);
  note_ = note;
}

void ProgressLine::Clear() {
  const std::lock_guard lock(mutex_);
  if (stands_) Show("");
  stands_ = false;
}

void ProgressLine::ShowIfDue() {
  const Seconds now = view_.clock();
  if (now < due_) return;
  const bool in_place = view_.place == ProgressPlace::kInPlace;
  due_ = now + (in_place ? kBetweenPictures : kBetweenLines);
  std::string line = VisibleText(Text(now));
  if (in_place) {
    const unsigned columns = view_.columns();
    line = CutTo(std::move(line),
                 columns > 1 ? columns - 1 : 1);  // the last column would begin a new line
  }
  Show(line);
  stands_ = in_place;
}

std::string ProgressLine::Text(Seconds now) const {
  const Seconds passed = now - began_;
  std::string text = what_;
  if (all_ == 0) {
    if (passed >= kSilence) text += fmt::format(", for {}", InWords(passed));
  } else {
    const auto all = static_cast<double>(all_);
    text += parts_.empty() ? fmt::format(": {:.0f} %", std::floor(100 * done_ / all))
                           : fmt::format(": {:.0f} of {} {}", std::floor(done_), all_, parts_);
    // Counts only parts that took time; work that has just begun says little.
    if (done_ > had_ && done_ < all && passed >= kSilence)
      text += fmt::format(", {} left", InWords((all - done_) / (done_ - had_) * passed));
  }
  return note_.empty() ? text : text + "; " + note_;
}

void ProgressLine::Show(const std::string& line) {
  if (view_.show) {
    view_.show(line);
  } else if (view_.place == ProgressPlace::kInPlace) {
    SayInPlace(line);
  } else {
    Say(line);
  }
}

}  // namespace rehearse
