// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// What all tests need that look which buttons work.

/** Presses each button of the content, also those that say why they may not be used, and returns the names of those that open a dialog. */
export function pressEach(page) {
  return page.evaluate(async () => {
    const drawn = () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
    const opened = [];
    for (const button of document.querySelectorAll("main .content button")) {
      if (!button.isConnected || button.closest("dialog")) continue;
      const name = button.textContent.trim();
      button.click();
      await drawn();
      const dialog = document.querySelector("dialog");
      if (!dialog) continue;
      opened.push(name);
      while (!dialog.open) await drawn(); // It is opened once it is drawn.
      dialog.close();
      while (document.querySelector("dialog")) await drawn();
    }
    return opened;
  });
}
