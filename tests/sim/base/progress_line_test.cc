#include "sim/base/progress_line.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/base/interruption.h"

namespace rehearse {
namespace progress_line_test {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// A line whose clock stands still until it is moved, and what it showed.
class ProgressLineTest : public ::testing::Test {
 protected:
  ProgressView In(ProgressPlace place) {
    ProgressView view;
    view.place = place;
    view.columns = [this] { return columns_; };
    view.clock = [this] { return now_; };
    view.show = [this](const std::string& line) { shown_.push_back(line); };
    return view;
  }

  Seconds now_ = Seconds(1000);
  unsigned columns_ = 80;
  std::vector<std::string> shown_;
};

TEST_F(ProgressLineTest, NothingIsShownInTheFirstSecond) {
  ProgressLine line(In(ProgressPlace::kInPlace));
  line.Begin("sweeping", "points", 10);
  now_ += Seconds(0.9);
  line.Done(5);
  EXPECT_THAT(shown_, IsEmpty());
  line.Clear();
  EXPECT_THAT(shown_, IsEmpty());
}

// 4 of 10 in 2 s: 3 s for the other 6.
TEST_F(ProgressLineTest, InPlaceItSaysHowManyHowLongYetAndTheBest) {
  ProgressLine line(In(ProgressPlace::kInPlace));
  line.Begin("sweeping", "points", 10);
  now_ += Seconds(2);
  line.Note("best 1.5 s (fsdp)");
  line.Done(4.3);
  now_ += Seconds(0.05);
  line.Done(5);  // too soon after it
  line.Clear();
  line.Clear();
  EXPECT_THAT(shown_, ElementsAre("sweeping: 4 of 10 points, 3 s left; best 1.5 s (fsdp)", ""));
}

TEST_F(ProgressLineTest, ElsewhereThereIsALineEveryHalfMinute) {
  {
    ProgressLine line(In(ProgressPlace::kLines));
    line.Begin("sweeping", "points", 1000);
    for (int second = 1; second <= 95; ++second) {
      now_ += Seconds(1);
      line.Done(second);
    }
  }
  EXPECT_THAT(shown_, ElementsAre("sweeping: 30 of 1000 points, 16 min 10 s left",
                                  "sweeping: 60 of 1000 points, 15 min 40 s left",
                                  "sweeping: 90 of 1000 points, 15 min 10 s left"));
}

TEST_F(ProgressLineTest, NowhereIsNothing) {
  ProgressLine line(In(ProgressPlace::kNowhere));
  line.Begin("sweeping", "points", 10);
  now_ += Seconds(100);
  line.Done(5);
  EXPECT_THAT(shown_, IsEmpty());
}

// 6 were there; one more took 10 s, and 3 are left.
TEST_F(ProgressLineTest, WhatWasThereBeforeSaysNothingAboutTheRest) {
  ProgressLine line(In(ProgressPlace::kInPlace));
  line.Begin("sweeping", "points", 10);
  line.Had(6);
  now_ += Seconds(10);
  line.Done(7);
  EXPECT_THAT(shown_, ElementsAre("sweeping: 7 of 10 points, 30 s left"));
}

TEST_F(ProgressLineTest, SmallPartsAreAShareAndUnknownOnesATime) {
  ProgressLine line(In(ProgressPlace::kInPlace));
  line.Begin("simulating", "", 3'000'000);
  now_ += Seconds(3600);
  line.Done(1'000'000);
  line.Begin("writing", "", 0);
  now_ += Seconds(5);
  line.Done(0);
  EXPECT_THAT(shown_, ElementsAre("simulating: 33 %, 2 h 0 min left", "writing, for 5 s"));
}

TEST_F(ProgressLineTest, ItIsNarrowerThanTheTerminal) {
  ProgressLine line(In(ProgressPlace::kInPlace));
  columns_ = 20;
  line.Begin("größer", "points", 10);
  line.Note("a\nb");
  now_ += Seconds(1.5);
  line.Done(0);
  columns_ = 40;
  now_ += Seconds(1);
  line.Done(0);
  EXPECT_THAT(shown_, ElementsAre("größer: 0 of 10 poi", "größer: 0 of 10 points; a\\nb"));
}

TEST_F(ProgressLineTest, WorkThatIsToStopIsEndedWhenItTells) {
  bool is_stopped = false;
  ProgressView view = In(ProgressPlace::kNowhere);
  view.is_stopped = [&] { return is_stopped; };
  ProgressLine line(view);
  line.Done(1);
  is_stopped = true;
  EXPECT_THROW(line.Done(2), Stopped);
}

TEST_F(ProgressLineTest, APartIsTheFractionOfItThatIsDone) {
  ProgressLine line(In(ProgressPlace::kInPlace));
  line.Begin("what would help", "machines", 4);
  PartObserver part(line, 2, "simulating");
  part.Begin("lowering", "ranks", 7);
  part.Done(7);
  part.Begin("simulating", "", 100);
  now_ += Seconds(5);
  part.Done(50);
  part.Note("of no interest");
  EXPECT_THAT(shown_, ElementsAre("what would help: 2 of 4 machines, 3 s left"));
}

}  // namespace progress_line_test
}  // namespace rehearse
